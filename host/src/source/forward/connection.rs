//! One connection: the handshake, then messages, read as far as they can be kept.
//!
//! Reading, making chunks and waiting for the disk overlap: several chunks may be under way, in order, and what was asked to be acknowledged is,
//! in that order. Where chunks find no room, nothing is read until they do.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::Instant;
use tracing::debug;

use super::door::Door;
use super::fault::Fault;
use super::gather::{Gather, Scratch, read_large};
use super::handshake::{Accepted, Challenge, LONGEST_PING};
use super::message::{self, Message};
use super::msgpack::Framer;
use crate::config::ForwardSecurity;
use crate::fair;
use crate::intake::Refused;
use crate::source::lane::MAX_UNDER_WAY;
use crate::source::places::{GivenUp, Place};
use crate::source::room::Held;
use crate::source::sink::{Durable, Sink};

/// Messages up to this size are read on the spot; larger ones would hold up other connections.
const READ_ON_THE_SPOT: usize = 64 << 10;

/// Read at a time; and so much of a connection's buffer is not counted as taking room.
const BLOCK: usize = 64 << 10;

/// How long a message may make no progress, and how long acknowledgements may not be read.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long more is waited for where nobody waits for an answer, so that a trickle becomes chunks of more than an event.
const PACE: Duration = Duration::from_millis(5);

/// How long the end of a connection may take to be said.
const FAREWELL: Duration = Duration::from_secs(1);

/// When room is asked for again.
const NO_ROOM_PAUSE: Duration = Duration::from_millis(50);

/// Why a connection ends.
enum End {
    /// The sender closed it.
    Closed,
    /// Without a message for `idle_timeout`.
    Idle,
    /// Wharf stops.
    Stopped,
    /// Another connection has its place.
    GivenUp,
    /// The connection broke.
    Broken(io::Error),
    /// What came is not taken.
    Refused(Fault),
}

impl From<Fault> for End {
    fn from(fault: Fault) -> Self {
        Self::Refused(fault)
    }
}

impl From<GivenUp> for End {
    fn from(_: GivenUp) -> Self {
        Self::GivenUp
    }
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}

/// Serves a connection to its end.
pub(super) async fn serve<S: AsyncRead + AsyncWrite + Send + Unpin>(
    mut stream: S,
    door: &Arc<Door>,
    place: &Place,
    peer: &str,
) {
    let end = match greeted(&mut stream, door, place).await {
        Ok((input, tenant)) => {
            let sink = tenant.map_or_else(|| Arc::clone(&door.sink), |tenant| door.sink.of_tenant(&tenant));
            let mut connection = Connection {
                stream,
                sink,
                input,
                scratch: Scratch::default(),
                gather: Gather::new(),
                under_way: VecDeque::new(),
                bytes_under_way: 0,
                active: Instant::now(),
                began: Instant::now(),
                door: Arc::clone(door),
                place,
            };
            connection.run().await
        }
        Err(end) => end,
    };
    match end {
        End::Refused(fault) => door.refused(peer, &fault),
        End::Broken(error) => debug!(source = %door.name, peer, "a connection broke: {error}"),
        End::Closed => debug!(source = %door.name, peer, "a connection was closed by the sender"),
        End::Idle => debug!(source = %door.name, peer, "a connection is closed: it was idle for idle_timeout"),
        End::GivenUp => debug!(source = %door.name, peer, "a connection is closed: another one has its place"),
        End::Stopped => debug!(source = %door.name, peer, "a connection is closed: Wharf is stopping"),
    }
}

/// What was read and is not used yet.
struct Input {
    buffer: BytesMut,
    framer: Framer,
    held: Held,
}

impl Input {
    fn new(door: &Door) -> Self {
        Self { buffer: BytesMut::new(), framer: message::framer(door.most_bytes), held: door.room.hold() }
    }

    /// Whether there is room to read another block.
    fn has_room(&mut self) -> bool {
        let wanted = self.buffer.len().saturating_sub(BLOCK) as u64;
        match wanted.checked_sub(self.held.bytes()) {
            // Several at once for a large message, so that it is not asked for at each block.
            Some(more) if more > 0 => self.held.add(more.max(wanted / 4)).or_else(|_| self.held.add(more)).is_ok(),
            _ => true,
        }
    }

    /// After something was taken from the buffer.
    fn shrink(&mut self) {
        self.held.shrink_to(self.buffer.len() as u64);
        if self.buffer.is_empty() && self.buffer.capacity() > 4 * BLOCK {
            self.buffer = BytesMut::new();
        }
    }
}

/// The handshake, where there is one. Gives what was read behind it, and the tenant who sends, where that is known.
async fn greeted<S: AsyncRead + AsyncWrite + Send + Unpin>(
    stream: &mut S,
    door: &Door,
    place: &Place,
) -> Result<(Input, Option<Arc<str>>), End> {
    let mut input = Input::new(door);
    let Some(security) = &door.security else { return Ok((input, None)) };
    let shaking = place.while_kept(shake_hands(stream, &mut input.buffer, security));
    match door.shutdown.run_until_cancelled(tokio::time::timeout(door.handshake_timeout, shaking)).await {
        Some(Ok(done)) => {
            let tenant = done.unwrap_or(Err(End::GivenUp))?;
            door.greeted(place, tenant.as_ref())?;
            input.held = door.room_of(tenant.as_ref());
            Ok((input, tenant))
        }
        Some(Err(_)) => Err(Fault::Slow { what: "the handshake", patience: door.handshake_timeout }.into()),
        None => Err(End::Stopped),
    }
}

/// "Handshake Phase": HELO, PING, PONG.
async fn shake_hands<S: AsyncRead + AsyncWrite + Send + Unpin>(
    stream: &mut S,
    buffer: &mut BytesMut,
    security: &ForwardSecurity,
) -> Result<Option<Arc<str>>, End> {
    let challenge = Challenge::new(security);
    stream.write_all(&challenge.helo()).await?;
    stream.flush().await?;
    let mut framer = Framer::new(LONGEST_PING, 2);
    let length = loop {
        if let Some(length) = framer.end(buffer)? {
            break length;
        }
        if stream.read_buf(buffer).await? == 0 {
            return Err(End::Closed);
        }
    };
    let ping = buffer.split_to(length);
    match challenge.answer(&ping, security) {
        Ok(Accepted { pong, tenant }) => {
            stream.write_all(&pong).await?;
            stream.flush().await?;
            Ok(tenant)
        }
        Err(denied) => {
            // That it hears the reason is a kindness; the connection ends in any case.
            let _ = stream.write_all(&denied.pong).await;
            let _ = tokio::time::timeout(FAREWELL, stream.shutdown()).await;
            Err(Fault::Auth(denied.why).into())
        }
    }
}

struct UnderWay {
    durable: Durable,
    bytes: u64,
    /// What is sent when it is durable.
    answers: Vec<u8>,
    _held: Held,
}

struct Connection<'a, S> {
    stream: S,
    /// Where its records go: the source's way in, or that of the tenant who sends.
    sink: Arc<dyn Sink>,
    input: Input,
    scratch: Scratch,
    gather: Gather,
    under_way: VecDeque<UnderWay>,
    bytes_under_way: u64,
    /// When something last came, or could be read again.
    active: Instant,
    /// When the message that the buffer begins with began to come.
    began: Instant,
    door: Arc<Door>,
    place: &'a Place,
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Connection<'_, S> {
    async fn run(&mut self) -> End {
        let Err(end) = self.take_messages().await;
        // What came before whatever ended it is kept all the same, and answered where that can be.
        let finished = match self.hand_in().await {
            Ok(()) => self.settle_all().await,
            Err(end) => Err(end),
        };
        let _ = tokio::time::timeout(FAREWELL, self.stream.shutdown()).await;
        match (end, finished) {
            (End::Closed | End::Idle, Err(last)) => last,
            (end, _) => end,
        }
    }

    async fn take_messages(&mut self) -> Result<std::convert::Infallible, End> {
        loop {
            match self.input.framer.end(&self.input.buffer)? {
                Some(length) => {
                    self.message(length).await?;
                    self.began = Instant::now();
                }
                None => self.wait().await?,
            }
            if self.gather.is_full() {
                self.hand_in().await?;
            }
        }
    }

    /// Takes the message that the buffer begins with.
    async fn message(&mut self, length: usize) -> Result<(), End> {
        if length <= READ_ON_THE_SPOT {
            let bytes = self.input.buffer.get(..length).unwrap_or_default();
            let message = Message::read(bytes)?;
            if message.as_ref().is_none_or(|message| !message.is_compressed()) {
                if let Some(message) = message {
                    self.scratch.read(message, &self.door, &mut self.gather)?;
                }
                self.input.buffer.advance(length);
                self.input.shrink();
                return Ok(());
            }
        }
        // Behind what came before.
        self.hand_in().await?;
        let bytes = self.input.buffer.split_to(length).freeze();
        self.input.shrink();
        let mut held = self.door.room.hold();
        held.add_anyway(length as u64);
        let door = Arc::clone(&self.door);
        let read = fair::job(move || {
            let read = read_large(&bytes, &door);
            drop(held);
            read
        });
        self.gather = read.await.map_err(|fault| Fault::Wharf(fault.to_string()))??;
        self.hand_in().await
    }

    /// Nothing whole is in the buffer: waits for whatever comes first.
    async fn wait(&mut self) -> Result<(), End> {
        let hand_in_at = self.gather.since().map(|since| if self.gather.is_awaited() { since } else { since + PACE });
        // Chunks under way take room that nobody asked for: while there is none, those that have some wait for them.
        let has_room = self.input.has_room() && (self.under_way.is_empty() || !self.door.room.is_full());
        let (is_inside, door) = (!self.input.buffer.is_empty(), Arc::clone(&self.door));
        let deadline = match (is_inside, door.idle_timeout) {
            (true, _) if has_room || self.under_way.is_empty() => Some(self.active + PATIENCE),
            (false, Some(idle)) if self.under_way.is_empty() => Some(self.active + idle),
            _ => None,
        };
        let is_idle = self.under_way.is_empty() && hand_in_at.is_none();
        if is_idle {
            door.is_idle(self.place, is_inside.then_some(self.began));
        } else {
            self.place.stays()?;
        }
        tokio::select! {
            biased;
            () = door.shutdown.cancelled() => Err(End::Stopped),
            () = self.place.given_up() => Err(End::GivenUp),
            () = self.input.held.given_up() => Err(Fault::Busy.into()),
            outcome = first_durable(&mut self.under_way) => self.settled(outcome).await,
            read = read_block(&mut self.stream, &mut self.input.buffer), if has_room => {
                self.active = Instant::now();
                if !is_inside {
                    self.began = self.active;
                }
                if read? == 0 {
                    return Err(End::Closed);
                }
                Ok(self.place.stays()?)
            }
            () = until(hand_in_at) => self.hand_in().await,
            () = until(deadline) => Err(match (is_inside, has_room) {
                (true, true) => Fault::Slow { what: "a message", patience: PATIENCE }.into(),
                (true, false) => Fault::Busy.into(),
                (false, _) => End::Idle,
            }),
            () = tokio::time::sleep(NO_ROOM_PAUSE), if !has_room => Ok(()),
        }
    }

    /// Hands in what was gathered.
    async fn hand_in(&mut self) -> Result<(), End> {
        let mut gathered = self.gather.take();
        let last = gathered.chunks.pop();
        for chunk in gathered.chunks {
            self.hand_in_one(chunk, Vec::new()).await?;
        }
        match last {
            Some(chunk) => self.hand_in_one(chunk, gathered.answers).await?,
            // Messages without events.
            None if !gathered.answers.is_empty() => {
                let (durable, held) = (Box::pin(std::future::ready(Ok(()))), self.door.room.hold());
                self.under_way.push_back(UnderWay { durable, bytes: 0, answers: gathered.answers, _held: held });
            }
            None => {}
        }
        self.active = Instant::now();
        Ok(())
    }

    async fn hand_in_one(&mut self, chunk: crate::record::Chunk, answers: Vec<u8>) -> Result<(), End> {
        let bytes = chunk.meta().body_bytes;
        let mut held = self.door.room.hold();
        held.add_anyway(bytes);
        while !self.under_way.is_empty() && self.bytes_under_way + bytes > MAX_UNDER_WAY {
            let outcome = first_durable(&mut self.under_way).await;
            self.settled(outcome).await?;
        }
        let (door, sink) = (Arc::clone(&self.door), Arc::clone(&self.sink));
        let taking = door.hand_in(&sink, chunk);
        tokio::pin!(taking);
        // While it waits for room, earlier ones become durable, and their senders are to know.
        let durable = loop {
            tokio::select! {
                biased;
                durable = &mut taking => break durable.map_err(stopped)?,
                outcome = first_durable(&mut self.under_way) => self.settled(outcome).await?,
            }
        };
        self.bytes_under_way += bytes;
        self.under_way.push_back(UnderWay { durable, bytes, answers, _held: held });
        Ok(())
    }

    async fn settle_all(&mut self) -> Result<(), End> {
        while !self.under_way.is_empty() {
            let outcome = first_durable(&mut self.under_way).await;
            self.settled(outcome).await?;
        }
        Ok(())
    }

    /// The first chunk under way is durable, or will not be: answers what waited for it.
    async fn settled(&mut self, outcome: Result<(), Refused>) -> Result<(), End> {
        let Some(first) = self.under_way.pop_front() else { return Ok(()) };
        self.bytes_under_way -= first.bytes;
        outcome.map_err(stopped)?;
        if first.answers.is_empty() {
            return Ok(());
        }
        let answering = async {
            self.stream.write_all(&first.answers).await?;
            self.stream.flush().await
        };
        match tokio::time::timeout(PATIENCE, answering).await {
            Ok(answered) => Ok(answered?),
            Err(_) => Err(Fault::Slow { what: "reading acknowledgements", patience: PATIENCE }.into()),
        }
    }
}

/// A refusal that is not waited out: waiting is of no use.
fn stopped(refused: Refused) -> End {
    match refused {
        Refused::TooLarge { bytes, limit } => Fault::NeverFits { bytes, limit }.into(),
        _ => End::Stopped,
    }
}

/// How the first chunk under way ended; never, where there is none.
async fn first_durable(under_way: &mut VecDeque<UnderWay>) -> Result<(), Refused> {
    match under_way.front_mut() {
        Some(first) => (&mut first.durable).await,
        None => std::future::pending().await,
    }
}

async fn read_block(stream: &mut (impl AsyncRead + Unpin), buffer: &mut BytesMut) -> io::Result<usize> {
    buffer.reserve(BLOCK / 4);
    if buffer.capacity() < BLOCK {
        buffer.reserve(BLOCK);
    }
    stream.read_buf(buffer).await
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
