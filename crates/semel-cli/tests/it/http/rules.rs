//! Rules as tests: each is tried on the layer and through the running proxy, by the same code.

/// Makes two tests of each function that takes a [`Kind`](super::front::Kind), and remembers their names.
macro_rules! rules {
    ($($name:ident)*) => {
        pub(crate) const NAMES: &[&str] = &[$(stringify!($name)),*];
        $crate::http::rules::rules!(@ layer Layer [$($name)*]);
        $crate::http::rules::rules!(@ proxy Proxy [$($name)*]);
    };
    (@ $side:ident $kind:ident [$($name:ident)*]) => {
        mod $side {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name($crate::http::front::Kind::$kind).await;
            })*
        }
    };
}
pub(crate) use rules;
