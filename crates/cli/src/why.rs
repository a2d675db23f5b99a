//! Why the system refused a file.

pub use host::why::why;
