//! The agreement of nodes with files of their own before they run: see [`crate::data::Agreement`].

use super::Processes;
use crate::data::{self, Agreement, Data, Moments, Own, Preparation, Told, garbled};
use crate::engine::{Begin, Independent, Limits, NEXT_CHAPTER, Refusal, Transport, block, masked};
use crate::error::{Error, Result};
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
        let sums =
            |told: &Told| if self.masks() { masked::BYTES * (1 + told.columns()) } else { 0 };
        told.map_or(0, |told| told.to_bytes().len().max(sums(told)))
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
        self.refuse_unlisted(own)?;
        // Process 0 may have read all files; each process sends those of its own nodes.
        let here = block(self.network.nodes, transport.size(), transport.rank());
        let masks = self.masks() && files.agreed().is_some();
        let bare = |told: &Told| if masks { told.without_moments() } else { told.clone() };
        let ours: Vec<u8> =
            own.told_by(here.clone()).flat_map(|told| bare(told).to_bytes()).collect();
        let (nodes, size) = (self.network.nodes, transport.size());
        let like = bare(own.told.first().ok_or_else(garbled)?);
        let accepts = |rank: usize, bytes: &[u8]| {
            like.check(bytes, block(nodes, size, rank).len()).ok_or(Refusal::Shape)
        };
        let judge = |heard: &Heard| self.judge(heard, files, own);
        let hear = |transport: &mut dyn Transport| -> Result<Heard> {
            let told = transport.all(&ours, &accepts)?;
            let each: Vec<&Told> = own.told_by(here.clone()).collect();
            let sums = if masks { self.sums(transport, &told, &each)? } else { None };
            Ok(Heard { told, sums })
        };
        match Processes::of(transport).are_peers() {
            false => judge(&hear(transport)?),
            true => {
                let most = ours.len().max(masked::BYTES * (1 + like.columns()));
                self.agree_as_peer(transport, (most, &hear), &judge, store)
            }
        }
        .map(Some)
    }

    /// The messages of all nodes.
    fn read_told(&self, told: &[Vec<u8>]) -> Result<Vec<Told>> {
        let bytes = told.concat();
        let mut bytes = Reader::new(&bytes);
        let told: Option<Vec<Told>> =
            (0..self.network.nodes).map(|_| Told::read(&mut bytes)).collect();
        told.filter(|_| bytes.end().is_some()).ok_or_else(garbled)
    }

    /// Both sums of the moments of all rows; `None` if the nodes have different columns, which all of them see.
    fn sums(
        &self,
        transport: &mut dyn Transport,
        told: &[Vec<u8>],
        ours: &[&Told],
    ) -> Result<Option<[Vec<f64>; 2]>> {
        let told = self.read_told(told)?;
        if !told.iter().all(|one| one.is_like(&told[0])) {
            return Ok(None);
        }
        let each: Option<Vec<Moments>> =
            ours.iter().map(|own| own.moments_like(&told[0])).collect();
        let each = each.ok_or_else(garbled)?;
        let first: Vec<_> = each.iter().map(Moments::summands).collect();
        let first = masked::sums(transport, &first)?;
        let means = data::means(&first);
        let second: Vec<_> = each.iter().map(|moments| moments.spreads(&means)).collect();
        let second = masked::sums(transport, &second)?;
        Ok(Some([first, second]))
    }

    /// The agreement that follows from the bytes of all nodes.
    fn judge(&self, heard: &Heard, files: &Preparation, own: &Own) -> Result<Agreement> {
        let told = self.read_told(&heard.told)?;
        own.judge(files)?;
        let sums = heard.sums.clone();
        let summed = sums.map(|[first, second]| Moments::of_sums(&first, second));
        Agreement::with(&told, summed.as_ref(), files).map_err(|error| error.at("[data]"))
    }

    /// The same among peers, as a run without iterations: each peer saves all messages before it
    /// may discard its own, but only if the nodes agree. Otherwise it saves nothing, because a user
    /// may correct a file.
    fn agree_as_peer(
        &self,
        transport: &mut dyn Transport,
        (most, hear): (usize, Hear),
        judge: &dyn Fn(&Heard) -> Result<Agreement>,
        store: &mut dyn Store,
    ) -> Result<Agreement> {
        let (spec, seed) = (&self.network, self.run.seeds[0]);
        let seed = spec.seed.unwrap_or(seed);
        let (_, mixing) = network::build(&spec.graph, &spec.weights, spec.nodes, seed)
            .map_err(|error| error.at("[network]"))?;
        let limits = Limits { message: 0, broadcast: most };
        let begin =
            |kept| Begin { job: 0, mixing: &mixing, kept, held: None, lacks: false, limits };
        let kept = store.agreed()?;
        let kept = kept.as_deref().and_then(Kept::read);
        if let Some(Kept { heard, .. }) = kept.as_ref().filter(|kept| kept.over) {
            independent(transport).pass(begin(None))?;
            return judge(heard);
        }
        let links = kept.as_ref().map(|kept| &kept.links[..]);
        independent(transport).begin(begin(links))?;
        let heard = match kept {
            Some(kept) => kept.heard,
            None => hear(transport).map_err(|error| match error.id {
                NEXT_CHAPTER => lost_agreement(),
                _ => error,
            })?,
        };
        let agreement = judge(&heard);
        let own = independent(transport);
        if agreement.is_err() {
            // The others receive the same messages, and refuse as well.
            own.end()?;
            return agreement;
        }
        let mut kept = Kept { over: false, links: own.save(true), heard };
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

/// The error of a node that was left out and has lost what all agreed on.
fn lost_agreement() -> Error {
    let message = "the others went on without this node, and what all agreed on before the runs is not in its run folder";
    Error::storage("storage/agreement", message)
        .hint("restore the run folder of this node to come back; `lopa adapt` makes a model for it from one of theirs")
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
    heard: Heard,
}

/// Hears what all nodes send, in the same calls at each of them.
type Hear<'a> = &'a dyn Fn(&mut dyn Transport) -> Result<Heard>;

/// What a node hears of the others.
struct Heard {
    /// The messages of all nodes.
    told: Vec<Vec<u8>>,
    /// Both sums of moments, if they were summed by masks.
    sums: Option<[Vec<f64>; 2]>,
}

impl Kept {
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.u64(u64::from(self.over));
        out.bytes(&self.links);
        out.u64(self.heard.told.len() as u64);
        self.heard.told.iter().for_each(|told| out.bytes(told));
        self.heard.sums.iter().flatten().for_each(|sums| out.reals(sums));
        out.done()
    }

    fn read(bytes: &[u8]) -> Option<Kept> {
        let mut bytes = Reader::new(bytes);
        let (over, links) = (bytes.u64()? == 1, bytes.bytes()?.to_vec());
        let mut told = Vec::new();
        for _ in 0..bytes.u64()? {
            told.push(bytes.bytes()?.to_vec());
        }
        let first: Option<Vec<f64>> = bytes.reals();
        let sums = match first {
            Some(first) => Some([first, bytes.reals()?]),
            None => None,
        };
        bytes.end()?;
        Some(Kept { over, links, heard: Heard { told, sums } })
    }
}
