//! `--pcap`: what passed the bottleneck and what did not, as pcapng, one record per packet with the reason of each drop.

use std::borrow::Cow;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use path::DropCause;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::{DataLink, PcapError};
use units::Instant;

/// Bytes kept of each packet: all headers, none of the payload.
const SNAPLEN: usize = 128;
/// Records that may wait for the disk. More are left out and counted: the emulator never waits.
const BACKLOG: usize = 65_536;

struct Entry {
    interface: u32,
    at: Instant,
    original: u32,
    kept: u16,
    bytes: [u8; SNAPLEN],
    fate: Option<DropCause>,
}

/// Takes packets of one direction for the file.
pub struct Capture {
    sender: SyncSender<Entry>,
    interface: u32,
    left_out: u64,
}

/// The thread that writes the file.
pub struct CaptureWriter {
    thread: JoinHandle<Result<u64, PcapError>>,
}

/// Opens `file` for both directions: forward, then back. `origin` is the experiment's start as time since 1970.
///
/// # Errors
/// Where the file can't be created or its head not be written.
pub fn open(file: &Path, origin: std::time::Duration) -> Result<([Capture; 2], CaptureWriter), PcapError> {
    let mut writer = PcapNgWriter::new(BufWriter::new(File::create(file).map_err(PcapError::IoError)?))?;
    for name in ["forward", "back"] {
        let mut interface = InterfaceDescriptionBlock::new(DataLink::RAW, SNAPLEN as u32);
        interface.options.push(InterfaceDescriptionOption::IfName(Cow::Borrowed(name)));
        interface.options.push(InterfaceDescriptionOption::IfTsResol(9));
        writer.write_pcapng_block(interface)?;
    }
    let (sender, receiver) = sync_channel(BACKLOG);
    let thread = std::thread::Builder::new()
        .name("pcap".to_owned())
        .spawn(move || write_all(writer, &receiver, origin))
        .map_err(PcapError::IoError)?;
    let capture = |interface| Capture { sender: sender.clone(), interface, left_out: 0 };
    Ok(([capture(0), capture(1)], CaptureWriter { thread }))
}

fn write_all(
    mut writer: PcapNgWriter<BufWriter<File>>,
    receiver: &Receiver<Entry>,
    origin: std::time::Duration,
) -> Result<u64, PcapError> {
    let mut written = 0;
    for entry in receiver {
        let options = entry
            .fate
            .map(|cause| {
                let text = match cause {
                    DropCause::Random => "dropped: random loss",
                    DropCause::Overflow => "dropped: queue full",
                    DropCause::Aqm => "dropped: AQM",
                    DropCause::Policer => "dropped: policer",
                };
                EnhancedPacketOption::Comment(Cow::Borrowed(text))
            })
            .into_iter()
            .collect();
        writer.write_pcapng_block(EnhancedPacketBlock {
            interface_id: entry.interface,
            timestamp: origin + std::time::Duration::from_nanos(entry.at.as_nanos()),
            original_len: entry.original,
            data: Cow::Borrowed(&entry.bytes[..usize::from(entry.kept)]),
            options,
        })?;
        written += 1;
    }
    use std::io::Write as _;
    writer.into_inner().flush().map_err(PcapError::IoError)?;
    Ok(written)
}

impl Capture {
    /// Hands one packet to the writer: dropped for `fate`, or delivered.
    pub(crate) fn packet(&mut self, at: Instant, header: &[u8], payload: &[u8], fate: Option<DropCause>) {
        let mut bytes = [0; SNAPLEN];
        let kept = header.len().min(SNAPLEN);
        bytes[..kept].copy_from_slice(&header[..kept]);
        let original = (header.len() + payload.len()) as u32;
        let entry = Entry { interface: self.interface, at, original, kept: kept as u16, bytes, fate };
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = self.sender.try_send(entry) {
            self.left_out += 1;
        }
    }

    /// Records left out because the disk was slower than the path.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

impl CaptureWriter {
    /// Waits until everything is on its way to the disk, after both [`Capture`]s are gone. Gives the number of records.
    ///
    /// # Errors
    /// Where the file could not be written.
    pub fn finish(self) -> Result<u64, PcapError> {
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}
