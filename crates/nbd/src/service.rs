//! One client after the other: from its first byte to its last.

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

use super::admission::{Admission, Handshake, NotLetIn};
use super::export::Export;
use super::negotiation::{Negotiation, Next, TlsPhase};
use super::portions::Borders;
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
    /// Long requests go to the disk in portions that end there.
    pub(super) borders: Borders,
    /// Bytes that the requests of all clients may still carry, beside those of each connection.
    pub(super) shared_bytes_left: Arc<Semaphore>,
    /// Bytes of the long replies in one piece that all clients may still wait for.
    pub(super) long_reply_bytes_left: Arc<Semaphore>,
    /// As many requests of all clients may still be with the disk.
    pub(super) places_left: Arc<Semaphore>,
    admission: Admission,
    tls: Option<TlsAcceptor>,
    first_phase: TlsPhase,
    stopping: watch::Sender<bool>,
}

/// Options that can be used, with what follows from them.
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
        let texts = [("the name", &options.export_name), ("the description", &options.description)];
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

/// Why a client was left. Holds nothing that the client asked of the disk.
#[derive(Debug, thiserror::Error)]
pub enum Disconnect {
    /// It does not speak NBD.
    #[error("the client does not speak NBD: {0}")]
    Malformed(&'static str),
    /// It took too long to choose an export.
    #[error("the client took too long to choose an export")]
    TooSlow,
    /// So many others came before it had chosen an export that it had to make room.
    #[error("the client had not chosen an export when too many others came to do so")]
    Displaced,
    /// Too many clients use the disk.
    #[error("too many clients use the disk: this one is turned away")]
    NoSeat,
    /// It went away in the middle of something.
    #[error("the client went away in the middle of something")]
    Vanished,
    /// It cannot prove who it is, or does not speak TLS.
    #[error("no TLS with the client: {0}")]
    Tls(io::Error),
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Io(io::Error),
}

impl Service {
    /// Serves `device`.
    ///
    /// # Errors
    /// When the options cannot be used.
    pub fn new(device: Arc<dyn BlockDevice>, options: &NbdOptions) -> Result<Self, ServeError> {
        Self::with(device, options, Checked::new(options)?)
    }

    /// Serves `device` with options that have been checked.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub(super) fn with(
        device: Arc<dyn BlockDevice>,
        options: &NbdOptions,
        Checked { tls, first_phase }: Checked,
    ) -> Result<Self, ServeError> {
        let limits = options.limits.clone();
        Ok(Self {
            export: Export::new(&*device, options),
            places_left: Arc::new(Semaphore::new(device.requests_in_flight_max())),
            borders: Borders::of(&*device),
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

    /// Serves one client until it leaves, or the service stops.
    ///
    /// # Errors
    /// When the client does not leave as it should.
    pub async fn serve<S: Stream>(&self, stream: S) -> Result<(), Disconnect> {
        let handshake = self.admission.begin_handshake().ok_or(Disconnect::NoSeat)?;
        let Some(agreed) = self.agree_in_time(stream, &handshake).await? else { return Ok(()) };
        let _seat = handshake.seat().ok_or(Disconnect::NoSeat)?;
        match agreed {
            Agreed::InClear { stream, structured } => self.transmit(stream, structured).await,
            Agreed::UnderTls { stream, structured } => self.transmit(*stream, structured).await,
        }
    }

    /// Lets requests in flight finish, takes no more, and then leaves all clients.
    pub fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Requests taken so far.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Whom it has not let in so far.
    pub fn not_let_in(&self) -> NotLetIn {
        self.admission.not_let_in()
    }

    pub(super) async fn stopped(&self) {
        // It cannot fail: the sender is in `self`.
        let _ = self.stopping.subscribe().wait_for(|stopping| *stopping).await;
    }

    /// Nothing when the client leaves, or the service stops, before they have agreed.
    async fn agree_in_time<S: Stream>(
        &self,
        stream: S,
        handshake: &Handshake<'_>,
    ) -> Result<Option<Agreed<S>>, Disconnect> {
        let limit = Duration::from_secs(self.limits.handshake_seconds_max);
        tokio::select! {
            agreed = timeout(limit, self.agree(stream, handshake)) => {
                agreed.map_err(|_| Disconnect::TooSlow)?
            }
            () = handshake.is_displaced() => Err(Disconnect::Displaced),
            () = self.stopped() => Ok(None),
        }
    }
}

/// A client that has chosen an export.
enum Agreed<S> {
    InClear { stream: S, structured: bool },
    UnderTls { stream: Box<TlsStream<S>>, structured: bool },
}

/// The negotiation.
impl Service {
    /// Nothing when the client leaves.
    async fn agree<S: Stream>(
        &self,
        mut stream: S,
        handshake: &Handshake<'_>,
    ) -> Result<Option<Agreed<S>>, Disconnect> {
        let mut greeting = Vec::new();
        wire::push_greeting(&mut greeting);
        stream.write_all(&greeting).await?;
        let client = ClientFlags::parse(read_array(&mut stream).await?)?;
        match self.negotiate(&mut stream, client, self.first_phase).await? {
            Next::Requests { structured } => Ok(Some(Agreed::InClear { stream, structured })),
            Next::StartTls => self.agree_under_tls(stream, client, handshake).await,
            Next::Option | Next::Leave => Ok(None),
        }
    }

    /// Of what was said in clear, maybe by somebody else, the client's flags alone count. They are not said
    /// again, and say nothing but how the client wants to be answered.
    async fn agree_under_tls<S: Stream>(
        &self,
        stream: S,
        client: ClientFlags,
        handshake: &Handshake<'_>,
    ) -> Result<Option<Agreed<S>>, Disconnect> {
        let acceptor = self.tls.as_ref().ok_or(Disconnect::Malformed("TLS that is not offered"))?;
        let mut stream = Box::new(acceptor.accept(stream).await.map_err(Disconnect::Tls)?);
        if stream.get_ref().1.peer_certificates().is_some() {
            handshake.client_is_known();
        }
        let next = self.negotiate(&mut *stream, client, TlsPhase::On).await?;
        Ok(match next {
            Next::Requests { structured } => Some(Agreed::UnderTls { stream, structured }),
            Next::Option | Next::StartTls | Next::Leave => None,
        })
    }

    /// Reads no byte beyond the last option: what follows may be TLS.
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

/// The requests.
impl Service {
    async fn transmit<S: Stream>(&self, stream: S, structured: bool) -> Result<(), Disconnect> {
        let (reader, writer) = stream.into_halves();
        let (replies, queue) = mpsc::unbounded_channel();
        // A set, so that the task does not outlive this future.
        let mut writing = JoinSet::new();
        writing.spawn(write_replies(writer, queue, structured));
        let end = tokio::select! {
            end = read_requests(self, structured, reader, replies) => end,
            () = self.stopped() => Ok(()),
            Some(end) = writing.join_next() => return Err(written(end).err().unwrap_or(Disconnect::Vanished)),
        };
        // Requests in flight hold the other end of the queue.
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

/// A connection that can be read and written at the same time.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// The half to read from.
    type Reader: AsyncRead + Unpin + Send + 'static;
    /// The half to write to.
    type Writer: AsyncWrite + Unpin + Send + 'static;
    /// Both halves.
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
