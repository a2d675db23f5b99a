//! tmp
fn main() {
    let start = std::time::Instant::now();
    let page = linerate_web::page::Page::generate(std::env::args().nth(2).map_or(20, |s| s.parse().unwrap()));
    println!("{:?}", start.elapsed());
    let dir = std::path::PathBuf::from(std::env::args().nth(1).unwrap());
    for r in page.resources() {
        let p = if r.path == "/" { "index.html" } else { &r.path[1..] };
        let p = dir.join(p);
        std::fs::create_dir_all(p.parent().unwrap()).unwrap();
        std::fs::write(p, &r.body).unwrap();
        println!("{:32} {}", r.path, r.body.len());
    }
    println!("{}", page.size().as_u64());
}
