//! The suite that every store passes: with threads, without, and with the store opened again after every call.

mod folder;
mod reopening;

mod threaded {
    use super::folder::InFolder;

    async fn open() -> InFolder {
        InFolder::threaded()
    }

    semel_testkit::conformance!(open);
}

mod inline {
    use super::folder::InFolder;

    async fn open() -> InFolder {
        InFolder::inline()
    }

    semel_testkit::conformance!(open);
}

mod reopened {
    use super::reopening::Reopening;

    async fn open() -> Reopening {
        Reopening::new()
    }

    semel_testkit::conformance!(open);
}
