//! A server of one volume in memory, which simulates faults.

use std::collections::{HashMap, VecDeque};
use std::io::{self, ErrorKind, Read, Write};
use std::mem;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use oblivio_core::store::{BucketStore, Frames, Piece, Span, TreeId, TreeShape};
use oblivio_core::{LayoutKind, MemoryStore};
use oblivio_store::Connector;
use oblivio_wire::link::Link;
use oblivio_wire::message::{MESSAGE_BYTES_MAX, VERSION};
use oblivio_wire::{Answer, Failure, FailureKind, OpenMode, Opened, Request, frame};

use crate::line::{Cut, End, line};

pub(crate) const NAME: &str = "volume";

/// How the server handles a request.
#[derive(Clone, Debug)]
pub(crate) enum ServerAction {
    /// Serves the request normally.
    Serve,
    /// Cuts the link instead of handling the request.
    Cut,
    /// Handles the request, and cuts the link before the answer.
    CutAnswer,
    /// Restarts. The server keeps the unflushed writes whose bit is set in this mask.
    Restart(u64),
    /// Handles the request after a delay.
    Wait(Duration),
    /// Answers `Working` this number of times, at this interval, before it handles the request.
    #[allow(dead_code, reason = "the tests of share servers use it")]
    Work(u32, Duration),
    /// Sends the answer only after the answer to the next request, if a request follows soon.
    Late,
    /// Sends these bytes instead of an answer.
    Say(Vec<u8>),
    /// Sends these bytes before the answer.
    SayFirst(Vec<u8>),
    /// Refuses the request.
    Refuse(FailureKind),
    /// Handles neither this nor any later request.
    Stall,
}

/// Chooses the server's action for each request, given the number of the request.
pub(crate) type ActionPlan = Box<dyn FnMut(usize, &Request) -> ServerAction + Send>;

/// Changes the server's answer to an opening, so that the server can lie about the volume.
pub(crate) type Disguise = fn(Opened) -> Opened;

#[derive(Clone)]
pub(crate) struct Server(Arc<Mutex<World>>);

pub(crate) struct World {
    volume: Option<Volume>,
    pub(crate) incarnation: u64,
    pub(crate) session: u64,
    plan: ActionPlan,
    requests: usize,
    /// All received reads, writes, flushes and computations, as bytes.
    pub(crate) frames: Vec<Vec<u8>>,
    /// The cuts of the next links, in order.
    pub(crate) cuts: VecDeque<Cut>,
    pub(crate) dials: usize,
    pub(crate) is_unreachable: bool,
    /// The number of the link that has the volume open.
    active: usize,
    /// Changes what the server reports about the volume on opening.
    pub(crate) disguise: Option<Disguise>,
    pub(crate) version: u32,
}

struct Volume {
    shapes: Vec<TreeShape>,
    live: MemoryStore,
    durable: Vec<u8>,
    unflushed: Vec<(Vec<Piece>, Vec<u8>)>,
}

impl Server {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(World {
            volume: None,
            incarnation: u64::MAX,
            session: 0,
            plan: Box::new(|_, _| ServerAction::Serve),
            requests: 0,
            frames: Vec::new(),
            cuts: VecDeque::new(),
            dials: 0,
            is_unreachable: false,
            active: 0,
            disguise: None,
            version: VERSION,
        })))
    }

    /// Sets the plan of actions, and begins to count requests from 0 again.
    pub(crate) fn plan(&self, plan: impl FnMut(usize, &Request) -> ServerAction + Send + 'static) {
        let mut world = self.world();
        world.plan = Box::new(plan);
        world.requests = 0;
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }

    pub(crate) fn connector(&self) -> Box<dyn Connector> {
        Box::new(FakeConnector(self.clone()))
    }

    /// Serves requests on an existing link.
    pub(crate) fn serve(
        &self,
        reader: impl Read + Send + 'static,
        writer: impl Write,
        close: impl Fn(),
    ) {
        let id = {
            let mut world = self.world();
            world.dials += 1;
            world.dials
        };
        let (to_do, requests) = channel();
        let mut reader = reader;
        let read = move || {
            while let Ok(Some(message)) = frame::receive(&mut reader, MESSAGE_BYTES_MAX) {
                if to_do.send(message).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().spawn(read).unwrap();
        // Fails if the client has disconnected.
        let _ = self.answer_all(id, &requests, writer);
        close();
    }

    fn answer_all(
        &self,
        id: usize,
        requests: &Receiver<Vec<u8>>,
        mut writer: impl Write,
    ) -> io::Result<()> {
        let mut late: Vec<Answer> = Vec::new();
        loop {
            writer.flush()?;
            let message = if late.is_empty() {
                requests.recv().map_err(|_| io::Error::from(ErrorKind::UnexpectedEof))?
            } else {
                match requests.recv_timeout(Duration::from_millis(2)) {
                    Ok(message) => message,
                    Err(RecvTimeoutError::Timeout) => {
                        for answer in late.drain(..) {
                            frame::send(&mut writer, &answer.encode())?;
                        }
                        continue;
                    }
                    Err(RecvTimeoutError::Disconnected) => return Ok(()),
                }
            };
            let request = Request::decode(&message).expect("the client sends valid requests");
            if matches!(request, Request::Flush { .. }) {
                for answer in late.drain(..) {
                    frame::send(&mut writer, &answer.encode())?;
                }
            }
            let action = {
                let mut world = self.world();
                if is_of_volume(&request) {
                    if world.active != id {
                        return Ok(());
                    }
                    world.frames.push(message);
                }
                let n = world.requests;
                world.requests += 1;
                (world.plan)(n, &request)
            };
            match action {
                ServerAction::Cut => return Ok(()),
                ServerAction::CutAnswer => {
                    self.world().carry_out(id, &request);
                    return Ok(());
                }
                ServerAction::Restart(kept_mask) => {
                    self.world().restart(kept_mask);
                    return Ok(());
                }
                ServerAction::Wait(time) => thread::sleep(time),
                ServerAction::Work(times, pause) => {
                    for _ in 0..times {
                        thread::sleep(pause);
                        frame::send(&mut writer, &Answer::Working.encode())?;
                        writer.flush()?;
                    }
                }
                ServerAction::Say(what) => {
                    writer.write_all(&what)?;
                    continue;
                }
                ServerAction::SayFirst(what) => writer.write_all(&what)?,
                ServerAction::Refuse(kind) => {
                    let answer = refusal(&request, kind, "it \x1b[31mdoes\nnot want to");
                    frame::send(&mut writer, &answer.encode())?;
                    continue;
                }
                ServerAction::Late => {
                    late.push(self.world().carry_out(id, &request));
                    continue;
                }
                ServerAction::Stall => {
                    while requests.recv().is_ok() {}
                    return Ok(());
                }
                ServerAction::Serve => (),
            }
            let answer = self.world().carry_out(id, &request);
            frame::send(&mut writer, &answer.encode())?;
            for answer in late.drain(..) {
                frame::send(&mut writer, &answer.encode())?;
            }
        }
    }
}

struct FakeConnector(Server);

impl Connector for FakeConnector {
    fn connect(&mut self, _: Duration) -> io::Result<Link> {
        let cut = {
            let mut world = self.0.world();
            if world.is_unreachable {
                world.dials += 1;
                return Err(ErrorKind::ConnectionRefused.into());
            }
            world.cuts.pop_front().unwrap_or(Cut::NEVER)
        };
        let (link, end) = line(cut);
        let server = self.0.clone();
        thread::Builder::new().spawn(move || serve_end(&server, end)).unwrap();
        Ok(link)
    }
}

fn serve_end(server: &Server, end: End) {
    let reader = end.try_clone();
    let closer = end.try_clone();
    server.serve(reader, end, || closer.close());
}

fn is_of_volume(request: &Request) -> bool {
    use Request::{Compute, Flush, Read, Write};
    matches!(request, Read { .. } | Write { .. } | Flush { .. } | Compute { .. })
}

fn refusal(request: &Request, kind: FailureKind, message: &str) -> Answer {
    Answer::Failed(Failure { number: request.number(), kind, message: message.into() })
}

/// Puts the length prefix before a message.
pub(crate) fn framed(message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::send(&mut out, message).unwrap();
    out
}

impl World {
    fn carry_out(&mut self, id: usize, request: &Request) -> Answer {
        match self.try_to(id, request) {
            Ok(answer) => answer,
            Err(kind) => refusal(request, kind, "no"),
        }
    }

    fn try_to(&mut self, id: usize, request: &Request) -> Result<Answer, FailureKind> {
        Ok(match request {
            Request::Hello { .. } => Answer::Welcome { version: self.version },
            Request::Open { name, mode } => {
                assert_eq!(name, NAME);
                match mode {
                    OpenMode::Create(_) if self.volume.is_some() => {
                        return Err(FailureKind::Exists);
                    }
                    OpenMode::Create(shapes) => self.volume = Some(Volume::new(shapes)),
                    _ if self.volume.is_none() => return Err(FailureKind::NoVolume),
                    OpenMode::Write | OpenMode::Read { .. } | OpenMode::Look => (),
                }
                self.session += 1;
                self.opened(id)
            }
            Request::Resume { session, .. } if *session != self.session => {
                return Err(FailureKind::Fenced);
            }
            Request::Resume { .. } => self.opened(id),
            Request::Look { .. } => Answer::Looked { is_there: self.volume.is_some() },
            Request::Remove { .. } => {
                self.volume.take().ok_or(FailureKind::NoVolume)?;
                Answer::Done { number: 0 }
            }
            Request::Read { number, pieces } => {
                Answer::Data { number: *number, bytes: self.volume().read(pieces).into() }
            }
            Request::Write { number, pieces, bytes } => {
                self.volume().write(pieces, bytes);
                self.volume().unflushed.push((pieces.clone(), bytes.clone()));
                Answer::Done { number: *number }
            }
            Request::Flush { number } => {
                self.volume().flush();
                Answer::Done { number: *number }
            }
            Request::Compute { number, message } => {
                let answer = [&message[..], b" computed"].concat();
                Answer::Data { number: *number, bytes: answer.into() }
            }
            Request::Peer { .. } | Request::Deal { .. } => return Err(FailureKind::Invalid),
        })
    }

    fn opened(&mut self, id: usize) -> Answer {
        self.active = id;
        let opened = Opened {
            session: self.session,
            incarnation: self.incarnation,
            shapes: self.volume().shapes.clone(),
            allocated_bytes: 7,
            is_cut_off: true,
            damage: vec!["a\x07b".into()],
            mended: vec!["c".into()],
        };
        Answer::Opened(self.disguise.map_or(opened.clone(), |disguise| disguise(opened)))
    }

    pub(crate) fn restart(&mut self, kept_mask: u64) {
        // Pseudorandom: incarnations are not monotonic. The first new one is smaller.
        self.incarnation = self.incarnation.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.active = 0;
        if let Some(volume) = &mut self.volume {
            volume.lose_unflushed(kept_mask);
        }
    }

    fn volume(&mut self) -> &mut Volume {
        self.volume.as_mut().unwrap()
    }

    /// The contents of the pieces on the server.
    pub(crate) fn holds(&mut self, pieces: &[Piece]) -> Vec<u8> {
        self.volume().read(pieces)
    }

    /// The bytes of each request, ordered by request number, without repetitions. Asserts that
    /// repetitions are identical.
    pub(crate) fn frames_once(&self) -> Vec<Vec<u8>> {
        let mut once: Vec<Vec<u8>> = Vec::new();
        let mut by_number: HashMap<u64, usize> = HashMap::new();
        for frame in &self.frames {
            let number = Request::decode(frame).unwrap().number();
            match by_number.get(&number) {
                Some(first) => assert!(once[*first] == *frame, "repetition of {number} differs"),
                None => {
                    by_number.insert(number, once.len());
                    once.push(frame.clone());
                }
            }
        }
        once
    }
}

impl Volume {
    fn new(shapes: &[TreeShape]) -> Self {
        let live = MemoryStore::new(shapes, LayoutKind::Heap).unwrap();
        let durable = live.contents().to_vec();
        Self { shapes: shapes.to_vec(), live, durable, unflushed: Vec::new() }
    }

    fn read(&mut self, pieces: &[Piece]) -> Vec<u8> {
        let frames = self.live.read(pieces).unwrap();
        (0..frames.len()).flat_map(|i| frames.get(i).to_vec()).collect()
    }

    fn write(&mut self, pieces: &[Piece], bytes: &[u8]) {
        let mut start = 0;
        let spans: Vec<_> = pieces
            .iter()
            .map(|piece| {
                let bytes = self.live.span(piece).unwrap().bytes;
                start += bytes;
                Span { start: start - bytes, bytes }
            })
            .collect();
        assert_eq!(start, bytes.len());
        self.live.write(pieces, &mut |blanks| blanks.relay(Frames::new(bytes, &spans))).unwrap();
    }

    fn flush(&mut self) {
        self.durable = self.live.contents().to_vec();
        self.unflushed.clear();
    }

    fn lose_unflushed(&mut self, kept_mask: u64) {
        let durable = self.durable.clone();
        self.live.contents_mut().copy_from_slice(&durable);
        for (i, (pieces, bytes)) in mem::take(&mut self.unflushed).iter().enumerate() {
            if kept_mask >> (i % 64) & 1 == 1 {
                self.write(pieces, bytes);
            }
        }
        self.durable = self.live.contents().to_vec();
        assert!(self.live.shape(TreeId(0)).is_some());
    }
}
