//! Writes the page into a folder, to look at it: `cargo run -p linerate-web --example write_page -- FOLDER`.

use std::path::PathBuf;
use std::{env, fs, io};

use linerate_web::Page;

fn main() -> io::Result<()> {
    let folder = PathBuf::from(env::args_os().nth(1).ok_or_else(|| io::Error::other("name a folder"))?);
    for resource in Page::standard().resources() {
        let name = if resource.path == "/" { "index.html" } else { resource.path.trim_start_matches('/') };
        let file = folder.join(name);
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(file, &resource.body)?;
        println!("{:8} {}", resource.size().as_u64(), resource.path);
    }
    println!("{:8} in {} files", Page::standard().size().as_u64(), Page::standard().resources().len());
    Ok(())
}
