//! Loads the page over `lo` in a namespace of its own, which shows what the browser itself costs:
//! `cargo run --release -p linerate-web --example loads -- [http1|http2] [LOADS] [CONGESTION_CONTROL]`. Needs root.

use std::env;
use std::error::Error;
use std::net::Ipv4Addr;
use std::sync::atomic::AtomicBool;

use host::netns::NetNs;
use linerate_web::{Progress, Protocol, WebPlan, measure};
use units::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let protocol = match arguments.next().as_deref() {
        Some("http1") => Protocol::Http1,
        Some("http2") | None => Protocol::Http2,
        Some(other) => return Err(format!("`{other}` is neither http1 nor http2").into()),
    };
    let loads = arguments.next().map_or(Ok(5), |loads| loads.parse())?;
    let congestion_control = arguments.next().unwrap_or_else(|| "cubic".into());
    let namespace = NetNs::create()?;
    let plan = WebPlan {
        near: &namespace,
        far: &namespace,
        server_addr: Ipv4Addr::LOCALHOST.into(),
        port: 0,
        protocol,
        congestion_control,
        loads,
        timeout: Duration::from_secs(60),
        stop: &AtomicBool::new(false),
    };
    measure(&plan, |progress| match progress {
        Progress::WarmingUp => println!("{protocol}, warming up"),
        Progress::Loading(_) => {}
        Progress::Loaded(load) => println!(
            "first paint {}, largest {}, document {}, load {}, first byte {}; {} in {} requests on {} connections, {}",
            load.fcp,
            load.lcp.map_or_else(|| "none".into(), |lcp| lcp.to_string()),
            load.dom_content_loaded,
            load.load,
            load.ttfb,
            load.bytes,
            load.requests,
            load.connections,
            load.congestion_control,
        ),
    })?;
    Ok(())
}
