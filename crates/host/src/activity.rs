//! What else runs: packets of the devices and work of each CPU, as differences between two looks at `/proc`.

use std::fs;

/// Counters of one device (proc_pid_net(5), `/proc/net/dev`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Bytes that came in since the device is there.
    pub rx_bytes: u64,
    /// Bytes that went out.
    pub tx_bytes: u64,
}

/// Time of one CPU in clock ticks (proc_stat(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cpu {
    /// Its number.
    pub number: u32,
    /// With anything but waiting: programs, kernel, interrupts, and what the hypervisor gave to others.
    pub busy: u64,
    /// Of that, in soft interrupts: where packets are handled.
    pub softirq: u64,
    /// All of it.
    pub all: u64,
}

/// One look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Activity {
    /// Devices of the calling thread's network namespace.
    pub devices: Vec<Device>,
    /// CPUs that are online.
    pub cpus: Vec<Cpu>,
}

impl Activity {
    /// Looks. What can't be read is left out.
    pub fn read() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        Self { devices: devices(&read("/proc/thread-self/net/dev")), cpus: cpus(&read("/proc/stat")) }
    }

    /// What happened since an earlier look: counters become differences; what was not there then is left out.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let devices = self.devices.iter().filter_map(|now| {
            let then = earlier.devices.iter().find(|then| then.name == now.name)?;
            Some(Device {
                name: now.name.clone(),
                rx_bytes: now.rx_bytes.saturating_sub(then.rx_bytes),
                tx_bytes: now.tx_bytes.saturating_sub(then.tx_bytes),
            })
        });
        let cpus = self.cpus.iter().filter_map(|now| {
            let then = earlier.cpus.iter().find(|then| then.number == now.number)?;
            Some(Cpu {
                number: now.number,
                busy: now.busy.saturating_sub(then.busy),
                softirq: now.softirq.saturating_sub(then.softirq),
                all: now.all.saturating_sub(then.all),
            })
        });
        Self { devices: devices.collect(), cpus: cpus.collect() }
    }

    /// The share of all CPUs' time with work, of a difference; `None` where no time passed.
    pub fn busy_share(&self) -> Option<f64> {
        let (busy, all) = self.cpus.iter().fold((0, 0), |(busy, all), cpu| (busy + cpu.busy, all + cpu.all));
        (all > 0).then(|| busy as f64 / all as f64)
    }
}

impl Cpu {
    /// The share of its time with work, of a difference; `None` where no time passed.
    pub fn busy_share(&self) -> Option<f64> {
        (self.all > 0).then(|| self.busy as f64 / self.all as f64)
    }

    /// The share of its time in soft interrupts, of a difference.
    pub fn softirq_share(&self) -> Option<f64> {
        (self.all > 0).then(|| self.softirq as f64 / self.all as f64)
    }
}

/// Lines `NAME: RX_BYTES` with 7 more numbers, `TX_BYTES` with 7 more.
fn devices(text: &str) -> Vec<Device> {
    let device = |line: &str| {
        let (name, numbers) = line.rsplit_once(':')?;
        let numbers: Vec<u64> = numbers.split_whitespace().map_while(|number| number.parse().ok()).collect();
        Some(Device { name: name.trim().to_owned(), rx_bytes: *numbers.first()?, tx_bytes: *numbers.get(8)? })
    };
    text.lines().filter_map(device).collect()
}

/// Lines `cpuN user nice system idle iowait irq softirq steal …`.
fn cpus(text: &str) -> Vec<Cpu> {
    let cpu = |line: &str| {
        let mut fields = line.split_whitespace();
        let number = fields.next()?.strip_prefix("cpu")?.parse().ok()?;
        // What guests take is part of `user` and `nice` already.
        let times: Vec<u64> = fields.take(8).map_while(|field| field.parse().ok()).collect();
        let all = times.iter().fold(0_u64, |sum, time| sum.saturating_add(*time));
        let waiting = times.get(3)?.saturating_add(*times.get(4)?);
        Some(Cpu { number, busy: all.saturating_sub(waiting), softirq: *times.get(6)?, all })
    };
    text.lines().filter_map(cpu).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEV: &str = "Inter-|   Receive                                                |  Transmit\n face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    lo:  100 1 0 0 0 0 0 0 100 1 0 0 0 0 0 0\neth0:2000 2 0 0 0 0 0 0 3000 3 0 0 0 0 0 0\n";
    const STAT: &str = "cpu  10 0 10 70 10 0 5 5 0 0\ncpu0 10 0 10 70 10 0 5 5 0 0\ncpu1 1 2\nintr 5\n";

    #[test]
    fn devices_and_cpus_are_read_and_what_is_cut_short_is_left_out() {
        let device = |name: &str, rx_bytes, tx_bytes| Device { name: name.into(), rx_bytes, tx_bytes };
        assert_eq!(devices(DEV), [device("lo", 100, 100), device("eth0", 2000, 3000)]);
        assert_eq!(cpus(STAT), [Cpu { number: 0, busy: 30, softirq: 5, all: 110 }]);
        assert_eq!((devices("eth0: 1 2 3\nx"), cpus("cpuX 1\ncpu\n")), (vec![], vec![]));
    }

    #[test]
    fn a_difference_needs_both_looks_and_no_time_has_no_share() {
        let then = Activity { devices: devices(DEV), cpus: cpus(STAT) };
        let now = Activity {
            devices: devices("eth0: 2500 2 0 0 0 0 0 0 3001 3 0 0 0 0 0 0\nnew: 1 0 0 0 0 0 0 0 1 0 0 0 0 0 0 0\n"),
            cpus: cpus("cpu0 15 0 10 75 10 0 5 5 0 0\n"),
        };
        let grown = now.since(&then);
        assert_eq!(grown.devices, [Device { name: "eth0".into(), rx_bytes: 500, tx_bytes: 1 }]);
        assert_eq!(grown.busy_share(), Some(0.5));
        assert_eq!(then.since(&then).busy_share(), None);
    }

    #[test]
    fn this_machine_has_a_loopback_and_a_cpu() {
        let seen = Activity::read();
        assert!(seen.devices.iter().any(|device| device.name == "lo"), "{seen:?}");
        assert!(!seen.cpus.is_empty(), "{seen:?}");
    }
}
