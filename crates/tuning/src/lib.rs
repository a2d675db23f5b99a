//! What linerate knows about the network knobs of Linux. No files, clocks or sockets: callers read, this crate judges.
#![forbid(unsafe_code)]

pub mod files;
