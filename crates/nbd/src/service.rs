//! Serves one client from its first byte to its last.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use oblivio_volume::device::BlockDevice;
use tokio::io::{
    AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf,
};
use tokio::net::{TcpStream, UnixStream, tcp, unix};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::admission::{Admission, Handshake, RefusedCounts};
use super::export::Export;
use super::negotiation::{Negotiation, Next, TlsPhase};
use super::portions::PortionBounds;
use super::replies::write_replies;
use super::requests::read_requests;
use super::wire::{self, ClientFlags, Malformed, OptionHead};
use super::{Limits, NbdOptions, ServeError, TlsMode, tls};

/// Serves a disk to clients that are already connected.
pub struct Service {
    pub(super) device: Arc<dyn BlockDevice>,
    pub(super) export: Export,
    pub(super) limits: Limits,
    pub(super) requests: AtomicU64,
    /// The boundaries of portions of long requests.
    pub(super) bounds: PortionBounds,
    /// The budget of bytes in flight that all connections share, in addition to the budget of each
    /// connection.
    pub(super) shared_bytes_left: Arc<Semaphore>,
    /// The budget of bytes for long replies that must be sent in one piece, shared by all
    /// connections.
    pub(super) long_reply_bytes_left: Arc<Semaphore>,
    /// Permits for requests that the disk has not answered, shared by all clients.
    pub(super) places_left: Arc<Semaphore>,
    admission: Admission,
    tls: Option<TlsAcceptor>,
    first_phase: TlsPhase,
    stopping: watch::Sender<bool>,
}

/// Validated options, with the resulting TLS configuration.
pub(super) struct Checked {
    tls: Option<TlsAcceptor>,
    first_phase: TlsPhase,
}

impl Checked {
    pub(super) fn new(options: &NbdOptions) -> Result<Self, ServeError> {
        let (tls, first_phase) = match &options.tls {
            TlsMode::Off => (None, TlsPhase::Off),
            TlsMode::Offered(files) => (Some(tls::acceptor(files)?), TlsPhase::Offered),
            TlsMode::Required(files) => (Some(tls::acceptor(files)?), TlsPhase::Required),
        };
        let texts = [
            ("the export name", &options.export_name),
            ("the export description", &options.description),
        ];
        if let Some((what, _)) =
            texts.into_iter().find(|(_, text)| text.len() > wire::STRING_BYTES_MAX)
        {
            return Err(ServeError::TooLong(what));
        }
        let limits = &options.limits;
        for (what, max) in [
            ("in_flight_requests_max", limits.in_flight_requests_max),
            ("in_flight_bytes_max", limits.in_flight_bytes_max),
            ("shared_bytes_max", limits.shared_bytes_max),
            ("request_bytes_max", limits.request_bytes_max),
        ] {
            if max == 0 {
                return Err(ServeError::NoRoom(what));
            }
        }
        Ok(Self { tls, first_phase })
    }
}

/// The reason why a client was disconnected. Contains nothing about its requests to the disk.
#[derive(Debug, thiserror::Error)]
pub enum Disconnect {
    /// The client violated the protocol.
    #[error("the client does not speak NBD: {0}")]
    Malformed(&'static str),
    /// The client took too long to choose an export.
    #[error("the client took too long to choose an export")]
    TooSlow,
    /// There were too many handshakes, and this client was dropped before it had chosen an export.
    #[error("the client had not chosen an export when too many newer clients connected")]
    Displaced,
    /// All seats are taken: [`Limits::connections_max`] clients use the disk.
    #[error("too many clients use the disk; this one is refused")]
    NoSeat,
    /// The client closed the connection within a message.
    #[error("the client disconnected within a message")]
    Vanished,
    /// The TLS handshake failed.
    #[error("the TLS handshake failed: {0}")]
    Tls(io::Error),
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Io(io::Error),
}

impl Service {
    /// Creates a service for `device`.
    ///
    /// # Errors
    /// If the options are unusable, or the system provides no random numbers.
    pub fn new(device: Arc<dyn BlockDevice>, options: &NbdOptions) -> Result<Self, ServeError> {
        Self::with(device, options, Checked::new(options)?)
    }

    /// Creates a service for `device` with validated options.
    ///
    /// # Errors
    /// If the system provides no random numbers.
    pub(super) fn with(
        device: Arc<dyn BlockDevice>,
        options: &NbdOptions,
        Checked { tls, first_phase }: Checked,
    ) -> Result<Self, ServeError> {
        let limits = options.limits.clone();
        Ok(Self {
            export: Export::new(&*device, options),
            places_left: Arc::new(Semaphore::new(device.requests_in_flight_max())),
            bounds: PortionBounds::for_device(&*device),
            device,
            requests: AtomicU64::new(0),
            shared_bytes_left: Arc::new(Semaphore::new(limits.shared_bytes_max as usize)),
            long_reply_bytes_left: Arc::new(Semaphore::new(limits.request_bytes_max as usize)),
            admission: Admission::new(&limits).map_err(ServeError::Randomness)?,
            limits,
            tls,
            first_phase,
            stopping: watch::Sender::new(false),
        })
    }

    /// Serves one client until it disconnects or the service stops.
    ///
    /// # Errors
    /// If the client does not disconnect properly, or is refused.
    pub async fn serve<S: Stream>(&self, stream: S) -> Result<(), Disconnect> {
        let handshake = self.admission.begin_handshake().ok_or(Disconnect::NoSeat)?;
        let Some(negotiated) = self.handshake_in_time(stream, &handshake).await? else {
            return Ok(());
        };
        let _seat = handshake.seat().ok_or(Disconnect::NoSeat)?;
        match negotiated {
            Negotiated::InClear { stream, structured } => self.transmit(stream, structured).await,
            Negotiated::UnderTls { stream, structured } => self.transmit(*stream, structured).await,
        }
    }

    /// Accepts no more requests, lets those in flight finish, and then disconnects all clients.
    pub fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// The number of requests received so far.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// The numbers of refused clients so far.
    pub fn refused_counts(&self) -> RefusedCounts {
        self.admission.refused_counts()
    }

    pub(super) async fn stopped(&self) {
        // Cannot fail: the sender is in `self`.
        let _ = self.stopping.subscribe().wait_for(|stopping| *stopping).await;
    }

    /// Negotiates within the time limit. `None` if the negotiation ends without an export, or the
    /// service stops first.
    async fn handshake_in_time<S: Stream>(
        &self,
        stream: S,
        handshake: &Handshake<'_>,
    ) -> Result<Option<Negotiated<S>>, Disconnect> {
        let limit = Duration::from_secs(self.limits.handshake_seconds_max);
        tokio::select! {
            negotiated = timeout(limit, self.perform_handshake(stream, handshake)) => {
                negotiated.map_err(|_| Disconnect::TooSlow)?
            }
            () = handshake.is_displaced() => Err(Disconnect::Displaced),
            () = self.stopped() => Ok(None),
        }
    }
}

/// A client that has chosen an export.
enum Negotiated<S> {
    InClear { stream: S, structured: bool },
    UnderTls { stream: Box<TlsStream<S>>, structured: bool },
}

/// The negotiation phase.
impl Service {
    /// Negotiates an export with the client. `None` if the negotiation ends without an export.
    async fn perform_handshake<S: Stream>(
        &self,
        mut stream: S,
        handshake: &Handshake<'_>,
    ) -> Result<Option<Negotiated<S>>, Disconnect> {
        let mut greeting = Vec::new();
        wire::push_greeting(&mut greeting);
        stream.write_all(&greeting).await?;
        let client = ClientFlags::parse(read_array(&mut stream).await?)?;
        match self.negotiate(&mut stream, client, self.first_phase).await? {
            Next::Requests { structured } => Ok(Some(Negotiated::InClear { stream, structured })),
            Next::StartTls => self.handshake_under_tls(stream, client, handshake).await,
            Next::Option | Next::Disconnect => Ok(None),
        }
    }

    /// Restarts the negotiation under TLS. An attacker may have changed everything that was sent
    /// unencrypted. Only the client's flags are kept: clients do not send them again, and they
    /// affect only the form of replies.
    async fn handshake_under_tls<S: Stream>(
        &self,
        stream: S,
        client: ClientFlags,
        handshake: &Handshake<'_>,
    ) -> Result<Option<Negotiated<S>>, Disconnect> {
        let acceptor = self
            .tls
            .as_ref()
            .ok_or(Disconnect::Malformed("TLS was requested but is not offered"))?;
        let mut stream = Box::new(acceptor.accept(stream).await.map_err(Disconnect::Tls)?);
        if stream.get_ref().1.peer_certificates().is_some() {
            handshake.client_is_known();
        }
        let next = self.negotiate(&mut *stream, client, TlsPhase::On).await?;
        Ok(match next {
            Next::Requests { structured } => Some(Negotiated::UnderTls { stream, structured }),
            Next::Option | Next::StartTls | Next::Disconnect => None,
        })
    }

    /// Negotiates options. Reads no byte beyond the last option, because TLS may follow it.
    async fn negotiate<S: Stream>(
        &self,
        stream: &mut S,
        client: ClientFlags,
        tls: TlsPhase,
    ) -> Result<Next, Disconnect> {
        let mut negotiation = Negotiation::new(&self.export, client, tls);
        let (mut data, mut answer) = (Vec::new(), Vec::new());
        loop {
            let head = OptionHead::parse(read_array(stream).await?)?;
            data.resize(head.bytes as usize, 0);
            stream.read_exact(&mut data).await?;
            answer.clear();
            let next = negotiation.take(head.code, &data, &mut answer)?;
            stream.write_all(&answer).await?;
            stream.flush().await?;
            if next != Next::Option {
                return Ok(next);
            }
        }
    }
}

/// The transmission phase.
impl Service {
    async fn transmit<S: Stream>(&self, stream: S, structured: bool) -> Result<(), Disconnect> {
        let (reader, writer) = stream.into_halves();
        let (replies, queue) = mpsc::unbounded_channel();
        // A set aborts the task if this future is dropped.
        let mut writing = JoinSet::new();
        writing.spawn(write_replies(writer, queue, structured));
        let end = tokio::select! {
            end = read_requests(self, structured, reader, replies) => end,
            () = self.stopped() => Ok(()),
            Some(end) = writing.join_next() =>
                return Err(written(end).err().unwrap_or(Disconnect::Vanished)),
        };
        // Requests in flight still hold senders of the queue.
        let written = writing.join_next().await.map_or(Ok(()), written);
        end.and(written)
    }
}

fn written(end: Result<io::Result<()>, tokio::task::JoinError>) -> Result<(), Disconnect> {
    end.map_err(|error| Disconnect::Io(error.into())).and_then(|end| Ok(end?))
}

async fn read_array<const N: usize>(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// A connection that can be split into independent halves.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// The half that reads.
    type Reader: AsyncRead + Unpin + Send + 'static;
    /// The half that writes.
    type Writer: AsyncWrite + Unpin + Send + 'static;
    /// Splits the connection into the two halves.
    fn into_halves(self) -> (Self::Reader, Self::Writer);
}

impl Stream for UnixStream {
    type Reader = unix::OwnedReadHalf;
    type Writer = unix::OwnedWriteHalf;
    fn into_halves(self) -> (Self::Reader, Self::Writer) {
        self.into_split()
    }
}

impl Stream for TcpStream {
    type Reader = tcp::OwnedReadHalf;
    type Writer = tcp::OwnedWriteHalf;
    fn into_halves(self) -> (Self::Reader, Self::Writer) {
        self.into_split()
    }
}

impl<S: Stream> Stream for TlsStream<S> {
    type Reader = ReadHalf<Self>;
    type Writer = WriteHalf<Self>;
    fn into_halves(self) -> (Self::Reader, Self::Writer) {
        tokio::io::split(self)
    }
}

impl Stream for DuplexStream {
    type Reader = ReadHalf<Self>;
    type Writer = WriteHalf<Self>;
    fn into_halves(self) -> (Self::Reader, Self::Writer) {
        tokio::io::split(self)
    }
}

impl From<Malformed> for Disconnect {
    fn from(Malformed(what): Malformed) -> Self {
        Self::Malformed(what)
    }
}

impl From<io::Error> for Disconnect {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
        match error.kind() {
            BrokenPipe | ConnectionReset | UnexpectedEof => Self::Vanished,
            _ => Self::Io(error),
        }
    }
}
