//! Who may ask a server.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// What a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Workers.
    Work,
    /// People who look.
    Read,
    /// People on call.
    Operate,
}

impl Role {
    /// All there are.
    pub const ALL: [Self; 3] = [Self::Work, Self::Read, Self::Operate];

    /// The word for it in the file.
    pub fn word(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Read => "read",
            Self::Operate => "operate",
        }
    }
}

/// A token, as its holder and as the server's file knows it.
#[derive(Clone, Debug)]
pub struct Token {
    /// What its holder sends.
    pub text: String,
    name: String,
    role: Role,
    scope: Vec<String>,
}

impl Token {
    /// A new one, within a scope; everywhere without.
    pub fn new(role: Role, scope: &[&str]) -> Self {
        let text = format!("semel_{}", URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>()));
        let name = format!("{} {}", role.word(), scope.join("/"));
        Self {
            text,
            name: name.trim().to_owned(),
            role,
            scope: scope.iter().map(|&part| part.to_owned()).collect(),
        }
    }

    /// Another name, for people.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }

    /// What the server's file says of it.
    pub fn toml(&self) -> String {
        let digest = Sha256::digest(self.text.as_bytes());
        let digest = digest.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
        let scope = if self.scope.is_empty() {
            String::new()
        } else {
            format!(
                "scope = [{}]\n",
                self.scope.iter().map(|part| format!("{part:?}")).collect::<Vec<_>>().join(", ")
            )
        };
        format!(
            "[[token]]\nname = {:?}\ndigest = \"sha256:{digest}\"\nrole = \"{}\"\n{scope}\n",
            self.name,
            self.role.word()
        )
    }
}
