//! A way to one neighbour: the hello, then frames, each with its length in front.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use iroh::endpoint::{Connection, ReadExactError, RecvStream, SendStream};
use lopa::engine::Event;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::hello::Hello;

/// Frames that wait in each direction of a link; what is more is lost or not yet read.
pub const QUEUE: usize = 64;

/// Something for whoever uses the wire.
pub enum Item {
    /// It happened; a frame keeps its room until it is taken.
    Happened { event: Event, _room: Option<OwnedSemaphorePermit> },
    /// A neighbour and this node cannot run together: the wire knows why.
    Refused,
}

impl From<Event> for Item {
    fn from(event: Event) -> Item {
        Item::Happened { event, _room: None }
    }
}

/// Why a link ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The other end, or the way to it, is gone.
    Gone(String),
    /// The other end broke the rules.
    Broke(String),
}

/// A stream to a neighbour, each of whose ends told the other its terms.
pub struct Stream {
    pub connection: Connection,
    pub out: SendStream,
    pub into: RecvStream,
}

impl Stream {
    /// Opens it at the end that dialled.
    pub async fn open(connection: Connection, ours: &Hello) -> Result<(Stream, Hello), End> {
        let (mut out, mut into) = connection.open_bi().await.map_err(gone)?;
        out.write_all(&ours.to_bytes()).await.map_err(gone)?;
        let theirs = read_hello(&mut into).await?;
        Ok((Stream { connection, out, into }, theirs))
    }

    /// Opens it at the end that was dialled.
    pub async fn accept(connection: Connection, ours: &Hello) -> Result<(Stream, Hello), End> {
        let (mut out, mut into) = connection.accept_bi().await.map_err(gone)?;
        let theirs = read_hello(&mut into).await?;
        // Whatever they said: who is told our terms can say what differs.
        out.write_all(&ours.to_bytes()).await.map_err(gone)?;
        Ok((Stream { connection, out, into }, theirs))
    }
}

fn gone(error: impl std::fmt::Display) -> End {
    End::Gone(error.to_string())
}

async fn read_hello(into: &mut RecvStream) -> Result<Hello, End> {
    let mut bytes = [0; Hello::LENGTH];
    into.read_exact(&mut bytes).await.map_err(unread)?;
    Hello::from_bytes(&bytes).ok_or_else(|| End::Broke("it does not speak as a peer".into()))
}

fn unread(error: ReadExactError) -> End {
    match error {
        ReadExactError::FinishedEarly(_) => End::Gone("it ended the stream".into()),
        other => gone(other),
    }
}

/// Hands frames on until the stream ends; waits where nobody takes them.
pub async fn read(
    mut into: RecvStream,
    from: usize,
    most: usize,
    room: Arc<Semaphore>,
    events: Sender<Item>,
) -> End {
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else {
            return End::Gone("the wire ended".into());
        };
        let mut length = [0; 4];
        if let Err(error) = into.read_exact(&mut length).await {
            return unread(error);
        }
        let length = u32::from_le_bytes(length) as usize;
        if length == 0 || length > most {
            return End::Broke(format!("it sent a frame of {length} bytes; {most} are the most"));
        }
        let mut frame = vec![0; length];
        if let Err(error) = into.read_exact(&mut frame).await {
            return unread(error);
        }
        let item = Item::Happened { event: Event::Frame(from, frame), _room: Some(permit) };
        if events.send(item).is_err() {
            return End::Gone("the wire ended".into());
        }
    }
}

/// Sends what is queued, until nobody queues any more; then waits until all of it arrived.
pub async fn write(mut out: SendStream, mut queue: mpsc::Receiver<Vec<u8>>) -> Result<(), End> {
    while let Some(frame) = queue.recv().await {
        out.write_all(&frame).await.map_err(gone)?;
    }
    let _ = out.finish();
    let _ = out.stopped().await;
    Ok(())
}

/// A frame with its length in front.
pub fn framed(frame: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(4 + frame.len());
    bytes.extend_from_slice(&(frame.len() as u32).to_le_bytes());
    bytes.extend_from_slice(frame);
    bytes
}
