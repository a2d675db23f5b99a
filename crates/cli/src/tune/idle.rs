//! What else this host does before the job begins.

use host::activity::Activity;
use measure::traffic::StopFlag;
use serde::Serialize;
use units::{Bytes, Duration, Rate};

use super::Path;

/// Looked at for so long.
const LOOK: std::time::Duration = std::time::Duration::from_secs(1);
/// A device that carries more than this share of the path while nothing is measured disturbs the measurement.
const DISTURBS: f64 = 0.02;
/// CPUs that are busier than this before anything is measured do so too.
const BUSY: f64 = 0.5;

/// A device that was not silent.
#[derive(Debug, Clone, Serialize)]
pub struct Device {
    name: String,
    in_bps: u64,
    out_bps: u64,
}

/// What was seen.
#[derive(Debug, Clone, Serialize)]
pub struct Idle {
    devices: Vec<Device>,
    cpu_busy_share: Option<f64>,
    open_connections: u64,
}

/// Looks for a second; shorter where a signal comes.
pub fn look(stop: &StopFlag) -> Idle {
    let begin = std::time::Instant::now();
    let before = Activity::read();
    while begin.elapsed() < LOOK && !stop.is_stopped() {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let time = Duration::from_nanos(begin.elapsed().as_nanos() as u64);
    let seen = Activity::read().since(&before);
    let rate = |bytes| Rate::from_transfer(Bytes::new(bytes), time).as_bps();
    let devices = seen.devices.iter().filter(|device| device.rx_bytes + device.tx_bytes > 0).map(|device| Device {
        name: device.name.clone(),
        in_bps: rate(device.rx_bytes),
        out_bps: rate(device.tx_bytes),
    });
    let users = host::tcp::control_users().unwrap_or_default();
    Idle {
        devices: devices.collect(),
        cpu_busy_share: seen.busy_share(),
        open_connections: users.values().map(|users| users.connections).sum(),
    }
}

impl Idle {
    /// One line for people.
    pub fn words(&self) -> String {
        let rates = |device: &Device| {
            format!("{} {} in, {} out", device.name, Rate::from_bps(device.in_bps), Rate::from_bps(device.out_bps))
        };
        let devices: Vec<String> = self.devices.iter().map(rates).collect();
        let devices = if devices.is_empty() { "no device carries anything".to_owned() } else { devices.join("; ") };
        let cpu = self.cpu_busy_share.map_or_else(String::new, |share| format!("; CPUs {:.0} % busy", share * 100.0));
        format!("Without us: {devices}{cpu}; {} open TCP connections\n", self.open_connections)
    }

    /// What of it makes figures unsteady on a path; empty where nothing does.
    pub fn disturbs(&self, path: &Path) -> Vec<String> {
        let mut out = Vec::new();
        let limit = path.bandwidth_bps as f64 * DISTURBS;
        for device in self.devices.iter().filter(|device| device.name != "lo") {
            let most = device.in_bps.max(device.out_bps);
            if most as f64 > limit {
                out.push(format!(
                    "{} carries {} without us, {:.0} % of the path: figures follow that too, so repeat when it is quiet",
                    device.name,
                    Rate::from_bps(most),
                    most as f64 / path.bandwidth_bps.max(1) as f64 * 100.0
                ));
            }
        }
        if let Some(share) = self.cpu_busy_share.filter(|share| *share > BUSY) {
            out.push(format!("the CPUs are {:.0} % busy without us: rates may be limited by that", share * 100.0));
        }
        out
    }
}
