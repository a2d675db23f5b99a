use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use host::cc::CcVersion;
use host::tcp::TcpInfo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// What is counted on one connection.
#[derive(Debug)]
pub(super) struct Counters {
    pub(super) congestion_control: CcVersion,
    pub(super) sent: AtomicU64,
    pub(super) received: AtomicU64,
    pub(super) requests: AtomicU64,
    /// Filled in when the connection ends.
    pub(super) retransmitted: AtomicU64,
    /// Whether the connection is to end with a reset, so that the kernel sends no more of what it has queued.
    pub(super) reset: AtomicBool,
}

/// A TCP connection that counts its bytes, above TCP and below TLS.
pub(super) struct Counted {
    stream: TcpStream,
    counters: Arc<Counters>,
}

impl Counted {
    /// Reads the congestion control back from the accepted socket and starts to count.
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        let counters = Arc::new(Counters {
            congestion_control: CcVersion::of(&stream)?,
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            retransmitted: AtomicU64::new(0),
            reset: AtomicBool::new(false),
        });
        Ok(Self { stream, counters })
    }

    pub(super) fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if let Ok(info) = TcpInfo::of(&self.stream) {
            self.counters.retransmitted.store(info.raw().total_retrans.into(), Ordering::Relaxed);
        }
        if self.counters.reset.load(Ordering::Relaxed) {
            // Where it fails the peer is gone already, and with it what there was to reset.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Counted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        self.counters.received.fetch_add((buffer.filled().len() - before) as u64, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
        self.counters.sent.fetch_add(written as u64, Ordering::Relaxed);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, slices))?;
        self.counters.sent.fetch_add(written as u64, Ordering::Relaxed);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
