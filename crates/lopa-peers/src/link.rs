//! A link to one neighbour: the hello, then frames, each prefixed by its length.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use iroh::endpoint::{Connection, ReadExactError, RecvStream, SendStream};
use lopa::engine::Event;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::hello::Hello;
use crate::keys::{self, Keys};

/// Capacity of the queues of a link, in frames. When full, outgoing frames are dropped and incoming
/// ones stay unread.
pub const QUEUE: usize = 64;

/// An item for the user of the wire.
pub enum Item {
    /// An event. A frame holds its place in the queue until it is taken.
    Event { event: Event, _permit: Option<OwnedSemaphorePermit> },
    /// A neighbour and this node cannot run together; the wire has the reason.
    Refused,
}

impl From<Event> for Item {
    fn from(event: Event) -> Item {
        Item::Event { event, _permit: None }
    }
}

/// Why a link ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The other end or the connection is gone.
    Gone(String),
    /// The other end violated the protocol.
    Broke(String),
    /// The other end needs the link no longer: it is done, or was stopped.
    Left,
}

/// A stream to a neighbour, after both ends have sent their hello.
pub struct Stream {
    pub connection: Connection,
    pub out: SendStream,
    pub into: RecvStream,
}

impl Stream {
    /// Opens the stream as the caller.
    pub async fn open(connection: Connection, ours: &Hello) -> Result<(Stream, Hello), End> {
        let (mut out, mut into) = connection.open_bi().await.map_err(gone)?;
        out.write_all(&ours.to_bytes()).await.map_err(gone)?;
        let theirs = read_hello(&mut into).await?;
        Ok((Stream { connection, out, into }, theirs))
    }

    /// Opens the stream as the callee.
    pub async fn accept(connection: Connection, ours: &Hello) -> Result<(Stream, Hello), End> {
        let (mut out, mut into) = connection.accept_bi().await.map_err(gone)?;
        let theirs = read_hello(&mut into).await?;
        // Even if theirs differs: they can then report how.
        out.write_all(&ours.to_bytes()).await.map_err(gone)?;
        Ok((Stream { connection, out, into }, theirs))
    }
}

/// Sends a list of keys and receives the other end's; the caller is the first to send, so that it may close
/// the connection afterwards.
pub async fn swap_keys(stream: &mut Stream, ours: &Keys, dialled: bool) -> Result<Keys, End> {
    let Stream { out, into, .. } = stream;
    let ours = framed(&ours.to_bytes());
    if dialled {
        out.write_all(&ours).await.map_err(gone)?;
    }
    let mut length = [0; 4];
    into.read_exact(&mut length).await.map_err(read_error)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > keys::MOST {
        return Err(End::Broke(format!("it sent {length} bytes of keys")));
    }
    let mut bytes = vec![0; length];
    into.read_exact(&mut bytes).await.map_err(read_error)?;
    if !dialled {
        out.write_all(&ours).await.map_err(gone)?;
    }
    Keys::from_bytes(&bytes).ok_or_else(|| End::Broke("malformed keys".into()))
}

fn gone(error: impl std::fmt::Display) -> End {
    End::Gone(error.to_string())
}

/// Receives the other end's hello.
pub async fn read_hello(into: &mut RecvStream) -> Result<Hello, End> {
    let mut bytes = [0; Hello::LENGTH];
    into.read_exact(&mut bytes).await.map_err(read_error)?;
    Hello::from_bytes(&bytes).ok_or_else(|| End::Broke("malformed hello".into()))
}

fn read_error(error: ReadExactError) -> End {
    match error {
        ReadExactError::FinishedEarly(0) => End::Left,
        ReadExactError::FinishedEarly(_) => End::Gone("it closed the stream".into()),
        other => gone(other),
    }
}

/// Forwards frames until the stream ends; waits while the queue is full.
pub async fn read(
    mut into: RecvStream,
    from: usize,
    max_frame: usize,
    places: Arc<Semaphore>,
    events: Sender<Item>,
) -> End {
    loop {
        let Ok(permit) = places.clone().acquire_owned().await else {
            return End::Gone("the wire was closed".into());
        };
        let mut length = [0; 4];
        if let Err(error) = into.read_exact(&mut length).await {
            return read_error(error);
        }
        let length = u32::from_le_bytes(length) as usize;
        if length == 0 || length > max_frame {
            return End::Broke(format!(
                "it sent a frame of {length} bytes; the limit is {max_frame}"
            ));
        }
        let mut frame = vec![0; length];
        if let Err(error) = into.read_exact(&mut frame).await {
            return read_error(error);
        }
        let item = Item::Event { event: Event::Frame(from, frame), _permit: Some(permit) };
        if events.send(item).is_err() {
            return End::Gone("the wire was closed".into());
        }
    }
}

/// Sends queued frames until the queue is closed, then waits until all have arrived.
pub async fn write(mut out: SendStream, mut queue: mpsc::Receiver<Vec<u8>>) -> Result<(), End> {
    while let Some(frame) = queue.recv().await {
        out.write_all(&frame).await.map_err(gone)?;
    }
    let _ = out.finish();
    let _ = out.stopped().await;
    Ok(())
}

/// A frame prefixed by its length.
pub fn framed(frame: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(4 + frame.len());
    bytes.extend_from_slice(&(frame.len() as u32).to_le_bytes());
    bytes.extend_from_slice(frame);
    bytes
}
