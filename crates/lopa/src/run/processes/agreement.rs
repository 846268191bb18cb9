//! The agreement of nodes with files of their own before they run: see [`crate::data::Agreement`].

use super::Processes;
use crate::data::{Agreement, Data, Own, Preparation, Told, garbled};
use crate::engine::{Accepts, Begin, Independent, Limits, Refusal, Transport, block};
use crate::error::Result;
use crate::experiment::Experiment;
use crate::network;
use crate::run::Store;
use crate::store::bytes::{Reader, Writer};

impl Experiment {
    /// Whether nodes have files of their own.
    pub(in crate::run) fn agrees(&self) -> bool {
        self.own_files().is_some()
    }

    fn own_files(&self) -> Option<&Preparation> {
        self.data.as_ref().map(|spec| &spec.preparation).filter(|files| files.nodes.is_some())
    }

    /// The bytes that a node sends all others before the runs.
    pub(in crate::run) fn told_bytes(&self, data: Option<&Data>) -> usize {
        let told = data.and_then(|data| data.own.as_ref()?.told.first());
        told.map_or(0, |told| told.to_bytes().len())
    }

    /// Agrees with all other processes, each of which has the files of its own nodes.
    pub(in crate::run) fn agree(
        &self,
        transport: &mut dyn Transport,
        data: Option<&Data>,
        store: &mut dyn Store,
    ) -> Result<Option<Agreement>> {
        let Some((files, own)) = self.own_files().zip(data.and_then(|data| data.own.as_ref()))
        else {
            return Ok(None);
        };
        // Process 0 may have read all files; each process sends those of its own nodes.
        let here = block(self.network.nodes, transport.size(), transport.rank());
        let ours: Vec<u8> = own.told_by(here).flat_map(Told::to_bytes).collect();
        let (nodes, size) = (self.network.nodes, transport.size());
        let like = own.told.first().ok_or_else(garbled)?;
        let accepts = |rank: usize, bytes: &[u8]| {
            like.check(bytes, block(nodes, size, rank).len()).ok_or(Refusal::Shape)
        };
        let judge = |told: &[Vec<u8>]| self.judge(told, files, own);
        match Processes::of(transport).are_peers() {
            false => judge(&transport.all(&ours, &accepts)?),
            true => self.agree_as_peer(transport, (&ours, &accepts), &judge, store),
        }
        .map(Some)
    }

    /// The agreement that follows from the bytes of all nodes.
    fn judge(&self, told: &[Vec<u8>], files: &Preparation, own: &Own) -> Result<Agreement> {
        let bytes = told.concat();
        let mut bytes = Reader::new(&bytes);
        let told: Option<Vec<Told>> =
            (0..self.network.nodes).map(|_| Told::read(&mut bytes)).collect();
        let told = told.filter(|_| bytes.end().is_some()).ok_or_else(garbled)?;
        own.judge(files)?;
        Agreement::of(&told, files).map_err(|error| error.at("[data]"))
    }

    /// The same among peers, as a run without iterations: each peer saves all messages before it
    /// may discard its own, but only if the nodes agree. Otherwise it saves nothing, because a user
    /// may correct a file.
    fn agree_as_peer(
        &self,
        transport: &mut dyn Transport,
        (ours, accepts): (&[u8], Accepts),
        judge: &dyn Fn(&[Vec<u8>]) -> Result<Agreement>,
        store: &mut dyn Store,
    ) -> Result<Agreement> {
        let (spec, seed) = (&self.network, self.run.seeds[0]);
        let seed = spec.seed.unwrap_or(seed);
        let (_, mixing) = network::build(&spec.graph, &spec.weights, spec.nodes, seed)
            .map_err(|error| error.at("[network]"))?;
        let limits = Limits { message: 0, broadcast: ours.len() };
        let begin = |kept| Begin { job: 0, mixing: &mixing, kept, limits };
        let kept = store.agreed()?;
        let kept = kept.as_deref().and_then(Kept::read);
        if let Some(Kept { told, .. }) = kept.as_ref().filter(|kept| kept.over) {
            independent(transport).pass(begin(None))?;
            return judge(told);
        }
        let links = kept.as_ref().map(|kept| &kept.links[..]);
        independent(transport).begin(begin(links))?;
        let told = match kept {
            Some(kept) => kept.told,
            None => transport.all(ours, accepts)?,
        };
        let agreement = judge(&told);
        let own = independent(transport);
        if agreement.is_err() {
            // The others receive the same messages, and refuse as well.
            own.end()?;
            return agreement;
        }
        let mut kept = Kept { over: false, links: own.save(true), told };
        store.agree(&kept.to_bytes())?;
        own.end()?;
        kept.over = true;
        store.agree(&kept.to_bytes())?;
        agreement
    }

    /// Applies the agreed columns and scaling to the data.
    pub(in crate::run) fn settle(
        &self,
        data: Option<&mut Data>,
        agreement: Option<&Agreement>,
    ) -> Result<()> {
        match (data, agreement, self.own_files()) {
            (Some(data), Some(agreement), Some(files)) => data.settle(agreement, files),
            _ => Ok(()),
        }
    }
}

fn independent(transport: &mut dyn Transport) -> &mut dyn Independent {
    match Processes::of(transport) {
        Processes::Peers(own) => own,
        _ => unreachable!("only peers are asked"),
    }
}

/// A peer's saved state of the agreement.
struct Kept {
    /// Whether all neighbours have also saved it.
    over: bool,
    /// The transport's part.
    links: Vec<u8>,
    /// The messages of all nodes.
    told: Vec<Vec<u8>>,
}

impl Kept {
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.u64(u64::from(self.over));
        out.bytes(&self.links);
        out.u64(self.told.len() as u64);
        self.told.iter().for_each(|told| out.bytes(told));
        out.done()
    }

    fn read(bytes: &[u8]) -> Option<Kept> {
        let mut bytes = Reader::new(bytes);
        let (over, links) = (bytes.u64()? == 1, bytes.bytes()?.to_vec());
        let mut told = Vec::new();
        for _ in 0..bytes.u64()? {
            told.push(bytes.bytes()?.to_vec());
        }
        bytes.end()?;
        Some(Kept { over, links, told })
    }
}
