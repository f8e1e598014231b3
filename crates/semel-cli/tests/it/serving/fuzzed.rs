//! Requests made from the OpenAPI document, a few hundred of them: `cargo xtask fuzz-api` sends many.

use proofs::fuzz::fuzz;

use super::pages::binary;

#[test]
fn every_answer_is_as_the_document_says() {
    let found = fuzz(binary(), 600, 7, &|| ()).expect("all is as documented");
    let (reached, all) = found.operations;
    assert!(found.requests == 600 && reached * 2 > all, "{found}");
}
