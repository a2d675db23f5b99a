//! The web row of the cellular guide: a page of about 2 MB, served in one network namespace and loaded by a browser in another.
pub mod page;
