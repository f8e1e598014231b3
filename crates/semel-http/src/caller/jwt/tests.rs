//! Tokens that are good, and every way in which one is not.

use http::Request;
use http::header::AUTHORIZATION;
use jsonwebtoken::{EncodingKey, Header, encode, get_current_timestamp};
use serde_json::json;

use super::*;
use crate::Principal;

const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";

/// A public key, and a token of `alice` that its private key signed, good until the year 2100.
const RSA_PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\n\
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAtAkvtZTFcermpRlm6+Gm\n\
7uffAMqybJ+9XcnGnO6xJViDdNflmxwC0J52FFs1/sQUTp/DykY0RWnvah+ylndT\n\
DOgYSqO6Xwwm8YVkOdHbnp5VXV0VSJfzcMh3czAEOs3zO7u2GXgHfWehs324W5Tl\n\
92R41ckZfg2slNPGWzBtxjMwpriBmHq4WCVMntePSXsLa15zz85+ukCdMYaU7Unh\n\
2jq2LSZxdd21NTN9dkI5TxvOdSQLa78wO03oyfTMltxXfHeOc3OdoHrU5AHRM9y7\n\
YcvLYeAISMvef90c2QG8cCxmyF2kT7kUKu6DFpuk7/J1Iz2kchjUF/Z7dN7fxMU1\n\
QwIDAQAB\n\
-----END PUBLIC KEY-----";
const RSA_TOKEN: &str = concat!(
    "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJhbGljZSIsImV4cCI6NDEwMjQ0NDgwMH0.IKk84trQX",
    "EIT4Da_1QzrRcCwx6S9WkTsSjNpIpWP3BSl-mBxY8gOyZV8lZ0OVH-Mv2hqMyPfVl7T-rQz8ZfGVzDuBQKkOwagmiR",
    "pQu3zVAVhyPPzBilhPUNEetwjHU9p5AeVLsyf6iDaiCMx6nRwQw6WqNck665RHV7HdF6YCm0KhJIEq1DRsHpu0C5bB",
    "C8q8tZocTXu5OizoTBHwAGqultabkQ228AX5aV6Z3lBrRNj0nw7J3egy_C-3wM5vmAZmWYtxlH_HcEYvlPcwLUvNsH",
    "kV37N2bdlBWnj5BjC4zioTW9Kwa3aLGcr36e8KqcDoZyvoHiuTx1iQHT3PlKOTg",
);

fn signed(algorithm: Algorithm, key: &EncodingKey, claims: &Value) -> String {
    encode(&Header::new(algorithm), claims, key).unwrap()
}

fn hmac(claims: &Value) -> String {
    signed(Algorithm::HS256, &EncodingKey::from_secret(SECRET), claims)
}

/// Whom a token names, as the principal says it.
fn caller(jwt: &Jwt, token: &str) -> Option<String> {
    let request = Request::builder().header(AUTHORIZATION, format!("bEaReR {token}")).body(()).unwrap();
    let caller = Principal::jwt(jwt.clone()).caller(&request.into_parts().0);
    caller.map(|caller| caller.as_str().to_owned())
}

fn in_secs(secs: i64) -> u64 {
    get_current_timestamp().saturating_add_signed(secs)
}

#[test]
fn a_good_token_names_its_caller_and_a_refreshed_one_the_same() {
    let jwt = Jwt::hmac(SECRET, &["HS256"]).unwrap();
    let first = hmac(&json!({"sub": "alice", "exp": in_secs(60), "jti": 1}));
    let refreshed = hmac(&json!({"sub": "alice", "exp": in_secs(600), "jti": 2}));
    assert_ne!(first, refreshed);
    assert_eq!(caller(&jwt, &first).as_deref(), Some("jwt:alice"));
    assert_eq!(caller(&jwt, &refreshed).as_deref(), Some("jwt:alice"));
}

#[test]
fn a_token_out_of_its_time_names_nobody() {
    let jwt = Jwt::hmac(SECRET, &["HS256"]).unwrap().leeway(Duration::ZERO);
    let good = json!({"sub": "alice", "exp": in_secs(600), "nbf": in_secs(-600)});
    assert!(caller(&jwt, &hmac(&good)).is_some());
    for bad in [
        json!({"sub": "alice", "exp": in_secs(-10)}),
        json!({"sub": "alice"}),
        json!({"sub": "alice", "exp": "soon"}),
        json!({"sub": "alice", "exp": in_secs(600), "nbf": in_secs(500)}),
    ] {
        assert_eq!(caller(&jwt, &hmac(&bad)), None, "{bad}");
    }
    let late = hmac(&json!({"sub": "alice", "exp": in_secs(-10)}));
    assert!(caller(&Jwt::hmac(SECRET, &["HS256"]).unwrap(), &late).is_some(), "a minute of leeway");
}

#[test]
fn issuer_and_audience_count_once_they_are_stated() {
    let jwt = Jwt::hmac(SECRET, &["HS256"]).unwrap();
    let token = hmac(&json!({"sub": "alice", "exp": in_secs(60), "iss": "a", "aud": ["x", "y"]}));
    let bare = hmac(&json!({"sub": "alice", "exp": in_secs(60)}));
    for jwt in [
        jwt.clone(),
        jwt.clone().issuer("a"),
        jwt.clone().audience("y"),
        jwt.clone().issuer("a").audience("x"),
    ] {
        assert!(caller(&jwt, &token).is_some(), "{jwt:?}");
    }
    for jwt in [jwt.clone().issuer("b"), jwt.clone().audience("z"), jwt.clone().issuer("a").audience("z")] {
        assert_eq!(caller(&jwt, &token), None);
        assert_eq!(caller(&jwt, &bare), None);
    }
}

#[test]
fn a_signature_that_is_not_good_names_nobody() {
    let jwt = Jwt::hmac(SECRET, &["HS256"]).unwrap();
    let claims = json!({"sub": "alice", "exp": in_secs(60)});
    let token = hmac(&claims);
    let (message, signature) = token.rsplit_once('.').unwrap();
    let (header, _) = message.split_once('.').unwrap();
    let other = hmac(&json!({"sub": "bob", "exp": in_secs(60)}));
    let others_claims = other.split('.').nth(1).unwrap();
    // {"alg":"none"} and {"alg":"None","typ":"JWT"}
    let unsigned = ["eyJhbGciOiJub25lIn0", "eyJhbGciOiJOb25lIiwidHlwIjoiSldUIn0"];
    let mut bad = vec![
        format!("{message}."),
        message.to_owned(),
        format!("{header}.{others_claims}.{signature}"),
        signed(Algorithm::HS256, &EncodingKey::from_secret(b"another secret"), &claims),
        signed(Algorithm::HS512, &EncodingKey::from_secret(SECRET), &claims),
        "a.b.c".to_owned(),
        "..".to_owned(),
        "x".to_owned(),
    ];
    for header in unsigned {
        let claims = message.split('.').nth(1).unwrap();
        bad.push(format!("{header}.{claims}."));
        bad.push(format!("{header}.{claims}.{signature}"));
    }
    for token in bad {
        assert_eq!(caller(&jwt, &token), None, "{token}");
    }
    assert!(caller(&jwt, &token).is_some());
}

#[test]
fn a_public_key_is_never_taken_for_a_secret() {
    let jwt = Jwt::public_key(RSA_PUBLIC.as_bytes(), &["RS256"]).unwrap();
    assert_eq!(caller(&jwt, RSA_TOKEN).as_deref(), Some("jwt:alice"));
    // Whoever knows the public key signs with it as if it were a secret.
    let forged = signed(
        Algorithm::HS256,
        &EncodingKey::from_secret(RSA_PUBLIC.as_bytes()),
        &json!({"sub": "alice", "exp": in_secs(60)}),
    );
    assert_eq!(caller(&jwt, &forged), None);
    assert!(Jwt::hmac(RSA_PUBLIC.as_bytes(), &["HS256"]).is_err());
    assert!(Jwt::public_key(RSA_PUBLIC.as_bytes(), &["HS256"]).is_err());
    assert!(Jwt::public_key(RSA_PUBLIC.as_bytes(), &["RS256", "HS256"]).is_err());
    assert!(Jwt::public_key(RSA_PUBLIC.as_bytes(), &["ES256"]).is_err());
    let only_stronger = Jwt::public_key(RSA_PUBLIC.as_bytes(), &["RS384", "PS256"]).unwrap();
    assert_eq!(caller(&only_stronger, RSA_TOKEN), None);
}

#[test]
fn keys_of_elliptic_curves_verify_their_tokens_only() {
    let pairs = [&rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ECDSA_P256_SHA256]
        .map(|algorithm| rcgen::KeyPair::generate_for(algorithm).unwrap());
    let claims = json!({"sub": "alice", "exp": in_secs(60)});
    let [ours, theirs] = pairs;
    let jwt = Jwt::public_key(ours.public_key_pem().as_bytes(), &["ES256"]).unwrap();
    let sign = |pair: &rcgen::KeyPair| {
        signed(Algorithm::ES256, &EncodingKey::from_ec_der(pair.serialized_der()), &claims)
    };
    assert_eq!(caller(&jwt, &sign(&ours)).as_deref(), Some("jwt:alice"));
    assert_eq!(caller(&jwt, &sign(&theirs)), None);
    assert!(Jwt::public_key(ours.serialize_pem().as_bytes(), &["ES256"]).is_err(), "a private key");
}

#[test]
fn a_claim_is_a_text_or_an_integer_and_the_two_differ() {
    let jwt = Jwt::hmac(SECRET, &["HS256"]).unwrap().claim("user");
    let of = |user: Value| caller(&jwt, &hmac(&json!({"user": user, "sub": "x", "exp": in_secs(60)})));
    assert_eq!(of(json!("7")).as_deref(), Some("jwt:7"));
    assert_eq!(of(json!(7)).as_deref(), Some("jwt-number:7"));
    for user in [json!(null), json!(true), json!(7.5), json!(["7"]), json!({}), json!(""), json!(" ")] {
        assert_eq!(of(user.clone()), None, "{user}");
    }
    assert_eq!(caller(&jwt, &hmac(&json!({"sub": "x", "exp": in_secs(60)}))), None);
}

#[test]
fn what_cannot_verify_anything_is_refused_with_a_way_out() {
    for refused in [
        Jwt::hmac(b"", &["HS256"]),
        Jwt::hmac(SECRET, &[]),
        Jwt::hmac(SECRET, &["none"]),
        Jwt::hmac(SECRET, &["hs256"]),
        Jwt::hmac(SECRET, &["RS256"]),
        Jwt::hmac(SECRET, &["HS256", "RS256"]),
        Jwt::public_key(b"not a key", &["RS256"]),
        Jwt::public_key(b"", &["EdDSA"]),
    ] {
        let message = refused.unwrap_err().to_string();
        assert!(message.contains("give") || message.contains("name"), "{message}");
        assert!(!message.contains("0123456789"), "{message}");
    }
}

#[test]
fn debug_output_shows_no_key() {
    let jwt = Jwt::hmac(SECRET, &["HS256"]).unwrap();
    let printed = format!("{jwt:?} {:?}", Principal::jwt(jwt.clone()));
    assert!(
        printed.contains("HS256") && !printed.contains("0123456789") && !printed.contains("48, 49"),
        "{printed}"
    );
}
