//! NVIDIA's driver, loaded on first use. All unsafe code of this crate is here.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use libloading::Library;
use lopa::error::{Error, Kind, Result};

use crate::job::Address;
use crate::kernels::only;

type Handle = *mut c_void;

macro_rules! api {
    ($($name:ident = $symbol:literal ($($argument:ty),*);)*) => {
        /// The functions of the driver that are used here.
        struct Api {
            $($name: unsafe extern "C" fn($($argument),*) -> c_int,)*
            _library: Library,
        }

        impl Api {
            /// Finds all functions; the error names a missing one.
            fn load() -> Result<Api, String> {
                let name = if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" };
                // SAFETY: the driver's initialisers are safe to run.
                let library = unsafe { Library::new(name) };
                let library = library.map_err(|_| format!("`{name}` was not found"))?;
                Ok(Api {
                    $($name: {
                        // SAFETY: the types are those of cuda.h for these versions of the functions.
                        let symbol = unsafe { library.get($symbol.as_bytes()) };
                        *symbol.map_err(|_| format!("`{name}` is too old: it has no {}", $symbol))?
                    },)*
                    _library: library,
                })
            }
        }
    };
}

api! {
    init = "cuInit" (c_uint);
    version = "cuDriverGetVersion" (*mut c_int);
    count = "cuDeviceGetCount" (*mut c_int);
    device = "cuDeviceGet" (*mut c_int, c_int);
    device_name = "cuDeviceGetName" (*mut c_char, c_int, c_int);
    attribute = "cuDeviceGetAttribute" (*mut c_int, c_int, c_int);
    retain = "cuDevicePrimaryCtxRetain" (*mut Handle, c_int);
    current = "cuCtxSetCurrent" (Handle);
    module = "cuModuleLoadData" (*mut Handle, *const c_void);
    function = "cuModuleGetFunction" (*mut Handle, Handle, *const c_char);
    set_function = "cuFuncSetAttribute" (Handle, c_int, c_int);
    info = "cuMemGetInfo_v2" (*mut usize, *mut usize);
    allocate = "cuMemAlloc_v2" (*mut Address, usize);
    free = "cuMemFree_v2" (Address);
    download = "cuMemcpyDtoH_v2" (*mut c_void, Address, usize);
    begin_upload = "cuMemcpyHtoDAsync_v2" (Address, *const c_void, usize, Handle);
    begin_download = "cuMemcpyDtoHAsync_v2" (*mut c_void, Address, usize, Handle);
    allocate_pinned = "cuMemAllocHost_v2" (*mut *mut c_void, usize);
    free_pinned = "cuMemFreeHost" (*mut c_void);
    clear = "cuMemsetD8Async" (Address, u8, usize, Handle);
    stream = "cuStreamCreate" (*mut Handle, c_uint);
    synchronize = "cuStreamSynchronize" (Handle);
    launch = "cuLaunchKernel" (
        Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle,
        *mut *mut c_void, *mut *mut c_void
    );
    begin_capture = "cuStreamBeginCapture_v2" (Handle, c_int);
    end_capture = "cuStreamEndCapture" (Handle, *mut Handle);
    instantiate = "cuGraphInstantiateWithFlags" (*mut Handle, Handle, u64);
    launch_graph = "cuGraphLaunch" (Handle, Handle);
    destroy_graph = "cuGraphDestroy" (Handle);
    destroy_exec = "cuGraphExecDestroy" (Handle);
    unload = "cuModuleUnload" (Handle);
    destroy_stream = "cuStreamDestroy_v2" (Handle);
    event = "cuEventCreate" (*mut Handle, c_uint);
    mark = "cuEventRecord" (Handle, Handle);
    follow = "cuStreamWaitEvent" (Handle, Handle, c_uint);
    destroy_event = "cuEventDestroy_v2" (Handle);
    error = "cuGetErrorString" (c_int, *mut *const c_char);
}

fn api() -> Result<&'static Api> {
    static API: OnceLock<Result<Api, String>> = OnceLock::new();
    let loaded = API.get_or_init(|| {
        let api = Api::load()?;
        // SAFETY: takes no pointers.
        match unsafe { (api.init)(0) } {
            0 => Ok(api),
            code => Err(format!("the driver does not start ({})", api.text(code))),
        }
    });
    loaded.as_ref().map_err(|why| {
        Error::config("device/no-driver", format!("there is no CUDA driver: {why}"))
            .at("run.device")
            .hint("install NVIDIA's driver, or run on the processor: `device = \"cpu\"`")
    })
}

impl Api {
    fn text(&self, code: c_int) -> String {
        let mut text = std::ptr::null();
        // SAFETY: the driver stores the address of a constant string, or null.
        let text = unsafe {
            (self.error)(code, &mut text);
            if text.is_null() { c"unknown" } else { CStr::from_ptr(text) }
        };
        format!("error {code}: {}", text.to_string_lossy())
    }

    fn check(&self, what: &str, code: c_int) -> Result<()> {
        match code {
            0 => Ok(()),
            code => {
                let message = format!("the card failed to {what} ({})", self.text(code));
                Err(Error::new(Kind::Run, "device/failed", message)
                    .hint("resume from the last checkpoint, if need be with `--device cpu`"))
            }
        }
    }
}

/// A graphics card.
pub struct Card {
    /// The name of the card, with its number where there are several.
    pub name: String,
    /// Its compute capability.
    pub capability: [i32; 2],
    /// The most shared memory of a block, in bytes.
    pub near: usize,
    api: &'static Api,
    context: Handle,
    stream: Handle,
    module: Handle,
    /// A second stream, and the events that tie it to the first; while `aside`, launches go there.
    beside: Handle,
    events: [Handle; 2],
    aside: Cell<bool>,
    /// Starts a kernel before the last one has finished, if the driver can record such launches.
    early: Option<LaunchEarly>,
    /// Whether launches are recorded, and whether the last thing in the first stream is a launch.
    recording: Cell<[bool; 2]>,
    /// The most dynamic shared memory that each kernel has been given: a kernel may be launched with several sizes.
    given: RefCell<Vec<(Handle, u32)>>,
}

// SAFETY: the driver's handles belong to the process, and `bind` makes the context current in whichever
// thread uses them.
unsafe impl Send for Card {}

impl Card {
    /// The card of the process with this number among those of the machine: processes take turns.
    pub fn of_process(place: usize) -> Result<Card> {
        let api = api()?;
        let (mut count, mut device, mut version) = (0, 0, 0);
        let none = std::ptr::null_mut();
        let (mut context, mut stream, mut beside, mut events) = (none, none, none, [none; 2]);
        let mut text = [0 as c_char; 256];
        // SAFETY: all pointers are to variables of the types that the driver writes.
        unsafe {
            api.check("count the cards", (api.count)(&mut count))?;
            if count == 0 {
                return Err(Error::config("device/no-card", "there is no graphics card")
                    .at("run.device")
                    .hint("check `nvidia-smi`, or run on the processor: `device = \"cpu\"`"));
            }
            let number = place % usize::try_from(count).unwrap_or(1);
            api.check("open the card", (api.device)(&mut device, number as c_int))?;
            api.check("name the card", (api.device_name)(text.as_mut_ptr(), 256, device))?;
            api.check("tell its version", (api.version)(&mut version))?;
            api.check("open the card", (api.retain)(&mut context, device))?;
            api.check("open the card", (api.current)(context))?;
            api.check("open a stream", (api.stream)(&mut stream, 1))?;
            api.check("open a stream", (api.stream)(&mut beside, 1))?;
            for event in &mut events {
                const NO_TIMING: c_uint = 2;
                api.check("open an event", (api.event)(event, NO_TIMING))?;
            }
        }
        // Compute capability, and the most shared memory that a block can have.
        let mut described = [0; 3];
        for (value, attribute) in described.iter_mut().zip([75, 76, 97]) {
            // SAFETY: as above.
            api.check("describe itself", unsafe { (api.attribute)(value, attribute, device) })?;
        }
        // SAFETY: the driver has written a string that ends with 0.
        let name = unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy();
        let [major, minor, near] = described;
        let (capability, near) = ([major, minor], near.max(0) as usize);
        let (cuda, point) = (version / 1000, version % 1000 / 10);
        let mut name = format!("{name}, compute capability {major}.{minor}, CUDA {cuda}.{point}");
        if count > 1 {
            name += &format!(", card {device} of {count}");
        }
        let aside = Cell::new(false);
        // SAFETY: the type is that of cuda.h.
        let early = match unsafe { api._library.get::<LaunchEarly>(b"cuLaunchKernelEx") } {
            Ok(early) if version >= CAN_RECORD_EARLY => Some(*early),
            _ => None,
        };
        let recording = Cell::new([false; 2]);
        Ok(Card {
            name,
            capability,
            near,
            api,
            context,
            stream,
            module: none,
            beside,
            events,
            aside,
            early,
            recording,
            given: RefCell::default(),
        })
    }

    /// Whether it has the instructions that only Hopper cards have.
    pub fn hopper(&self) -> bool {
        self.capability == [9, 0]
    }

    /// Makes the card's context that of this thread.
    pub fn bind(&self) -> Result<()> {
        // SAFETY: the context was retained and is never released.
        self.api.check("be used here", unsafe { (self.api.current)(self.context) })
    }

    /// Loads these kernels of all that the text has: translating the others would take seconds.
    pub fn translate(&mut self, ptx: &str, names: &[String]) -> Result<()> {
        let text = CString::new(only(ptx, names)).expect("PTX has no zeros");
        self.load(text.as_bytes_with_nul())
    }

    /// Loads code: of the card's kind, or text that ends with 0.
    pub fn load(&mut self, code: &[u8]) -> Result<()> {
        // SAFETY: the driver finds the end of both, and copies them. Nothing of an earlier module is used any more.
        let code = unsafe {
            if !self.module.is_null() {
                (self.api.unload)(self.module);
                self.module = std::ptr::null_mut();
                self.given.borrow_mut().clear();
            }
            (self.api.module)(&mut self.module, code.as_ptr().cast())
        };
        self.api.check("load the kernels", code)
    }

    /// A kernel for blocks of [`THREADS`].
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        self.wide_kernel(name, THREADS, 0)
    }

    /// A kernel for blocks of this many threads, with dynamic shared memory.
    pub fn wide_kernel(&self, name: &str, threads: u32, shared: u32) -> Result<Kernel> {
        let text = CString::new(name).expect("names have no zeros");
        let mut function = std::ptr::null_mut();
        // SAFETY: the text ends with 0.
        let code = unsafe { (self.api.function)(&mut function, self.module, text.as_ptr()) };
        self.api.check(&format!("find the kernel `{name}`"), code)?;
        let mut given = self.given.borrow_mut();
        let before = given.iter().filter(|(of, _)| *of == function).map(|(_, most)| *most).max();
        if shared > before.unwrap_or(0) {
            const LARGEST_DYNAMIC: c_int = 8;
            // SAFETY: takes no pointers except the function.
            let code =
                unsafe { (self.api.set_function)(function, LARGEST_DYNAMIC, shared as c_int) };
            self.api.check("give a kernel shared memory", code)?;
            given.push((function, shared));
        }
        Ok(Kernel { function, threads, shared, waits: false })
    }

    /// How many clusters of `blocks` blocks, the size that the kernel declares, fit on the card at
    /// once.
    pub fn clusters(&self, kernel: &Kernel, blocks: u32) -> Result<u32> {
        type Ask = unsafe extern "C" fn(*mut c_int, Handle, *const Config) -> c_int;
        let config = Config {
            grid: [blocks, 1, 1],
            block: [kernel.threads, 1, 1],
            shared: kernel.shared,
            stream: self.stream,
            attributes: std::ptr::null(),
            count: 0,
        };
        let mut fit = 0;
        // SAFETY: the type is that of cuda.h; drivers without clusters do not have it.
        let code = match unsafe { self.api._library.get::<Ask>(b"cuOccupancyMaxActiveClusters") } {
            // SAFETY: pointers are to variables of the types that the driver reads and writes.
            Ok(ask) => unsafe { ask(&mut fit, kernel.function, &config) },
            Err(_) => return Ok(0),
        };
        self.api.check("count clusters", code)?;
        Ok(fit.max(0) as u32)
    }

    /// Memory for `count` values, all zero.
    pub fn room<V: Copy>(&self, count: usize) -> Result<Memory> {
        let bytes = (count * size_of::<V>()).max(1);
        let (mut address, mut free, mut all) = (0, 0, 0);
        // SAFETY: as above.
        let code = unsafe {
            (self.api.info)(&mut free, &mut all);
            (self.api.allocate)(&mut address, bytes)
        };
        if code == 2 {
            let gib = |bytes: usize| bytes as f64 / f64::from(1 << 30);
            let message = format!(
                "the card has too little memory: {:.2} GiB more are needed, {:.2} of {:.2} are free",
                gib(bytes),
                gib(free),
                gib(all)
            );
            return Err(Error::config("device/memory", message)
                .at("run.device")
                .hint("use fewer nodes or a smaller model, or run on the processor"));
        }
        self.api.check("find memory", code)?;
        let memory = Memory { address, bytes, api: self.api };
        // In the stream of the launches, which wait for no other.
        // SAFETY: the memory is that long.
        let code = unsafe { (self.api.clear)(address, 0, bytes, self.stream) };
        self.api.check("clear memory", code)?;
        self.wait()?;
        Ok(memory)
    }

    /// Memory that holds these values.
    pub fn copy<V: Copy>(&self, values: &[V]) -> Result<Memory> {
        let memory = self.room::<V>(values.len())?;
        self.put(&memory, values)?;
        Ok(memory)
    }

    /// Writes values after all earlier launches have finished.
    pub fn put<V: Copy>(&self, memory: &Memory, values: &[V]) -> Result<()> {
        self.put_at(memory, 0, values)
    }

    /// Writes values from index `first` on.
    pub fn put_at<V: Copy>(&self, memory: &Memory, first: usize, values: &[V]) -> Result<()> {
        let from = first * size_of::<V>();
        assert!(from + size_of_val(values) <= memory.bytes, "it fits");
        self.wait()?;
        let to = memory.address + from as Address;
        // In the stream of the launches, which wait for no other.
        // SAFETY: both are that long; values are plain numbers, and stay until all have arrived.
        let code = unsafe {
            (self.api.begin_upload)(to, values.as_ptr().cast(), size_of_val(values), self.stream)
        };
        self.api.check("take data", code)?;
        self.wait()
    }

    /// Reads values after all earlier launches have finished.
    pub fn get<V: Copy>(&self, memory: &Memory, values: &mut [V]) -> Result<()> {
        self.get_at(memory, 0, values)
    }

    /// Reads values from index `first` on.
    pub fn get_at<V: Copy>(&self, memory: &Memory, first: usize, values: &mut [V]) -> Result<()> {
        let from = first * size_of::<V>();
        assert!(from + size_of_val(values) <= memory.bytes, "there are as many");
        self.wait()?;
        let from = memory.address + from as Address;
        // SAFETY: both are that long; all bits are numbers.
        let code =
            unsafe { (self.api.download)(values.as_mut_ptr().cast(), from, size_of_val(values)) };
        self.api.check("give data back", code)
    }

    /// Launches a kernel whose parameters are a job and a number.
    pub fn launch<J>(
        &self,
        kernel: &Kernel,
        [across, down]: [u32; 2],
        job: &J,
        now: u32,
    ) -> Result<()> {
        let stream = if self.aside.get() { self.beside } else { self.stream };
        self.launch_on(stream, kernel, [across, down], job, now)
    }

    fn launch_on<J>(
        &self,
        stream: Handle,
        kernel: &Kernel,
        [across, down]: [u32; 2],
        job: &J,
        now: u32,
    ) -> Result<()> {
        let mut parameters: [*mut c_void; 2] =
            [std::ptr::from_ref(job).cast_mut().cast(), std::ptr::from_ref(&now).cast_mut().cast()];
        let [recording, after_launch] = self.recording.get();
        let first = stream == self.stream;
        let code = match self.early {
            Some(early) if kernel.waits && after_launch && first => {
                // "Programmatic stream serialization" is on; four bytes of padding come before the value.
                const EARLY: Attribute = {
                    let mut value = [0; 17];
                    value[1] = 1;
                    Attribute { id: 6, value }
                };
                let config = Config {
                    grid: [across, down, 1],
                    block: [kernel.threads, 1, 1],
                    shared: kernel.shared,
                    stream,
                    attributes: &EARLY,
                    count: 1,
                };
                let none = std::ptr::null_mut();
                // SAFETY: as below.
                unsafe { early(&config, kernel.function, parameters.as_mut_ptr(), none) }
            }
            // SAFETY: the driver copies the parameters, whose types are those of the kernel.
            _ => unsafe {
                (self.api.launch)(
                    kernel.function,
                    across,
                    down,
                    1,
                    kernel.threads,
                    1,
                    1,
                    kernel.shared,
                    stream,
                    parameters.as_mut_ptr(),
                    std::ptr::null_mut(),
                )
            },
        };
        if first {
            self.recording.set([recording, recording]);
        }
        self.api.check("start a kernel", code)
    }

    /// Launches of `aside` beside those of `work`: what comes later waits for both.
    pub fn beside(
        &self,
        aside: impl FnOnce() -> Result<()>,
        work: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let [before, after] = self.events;
        self.follow(before, self.stream, self.beside)?;
        self.aside.set(true);
        let done = aside();
        self.aside.set(false);
        done?;
        work()?;
        self.follow(after, self.beside, self.stream)
    }

    /// Lets what comes later in one stream wait for what the other has so far.
    fn follow(&self, event: Handle, from: Handle, to: Handle) -> Result<()> {
        if to == self.stream {
            self.recording.set([self.recording.get()[0], false]);
        }
        // SAFETY: all handles are valid.
        unsafe {
            self.api.check("order launches", (self.api.mark)(event, from))?;
            self.api.check("order launches", (self.api.follow)(to, event, 0))
        }
    }

    /// A ferry for this many bytes from the card, and to it.
    pub fn ferry(&self, out: usize, into: usize) -> Result<Ferry> {
        let memory = [self.room::<u8>(out)?, self.room::<u8>(into)?];
        let none = std::ptr::null_mut();
        let mut ferry = Ferry {
            api: self.api,
            stream: none,
            events: [none; 2],
            pinned: [none; 2],
            sizes: [out, into],
            memory,
        };
        // SAFETY: all pointers are to handles, which the ferry keeps until it is dropped.
        unsafe {
            self.api.check("open a stream", (self.api.stream)(&mut ferry.stream, 1))?;
            for event in &mut ferry.events {
                const NO_TIMING: c_uint = 2;
                self.api.check("open an event", (self.api.event)(event, NO_TIMING))?;
            }
            for (pinned, bytes) in ferry.pinned.iter_mut().zip([out, into]) {
                let code = (self.api.allocate_pinned)(pinned, bytes.max(1));
                self.api.check("pin memory of the host", code)?;
                // Whoever reads it finds numbers.
                std::ptr::write_bytes((*pinned).cast::<u8>(), 0, bytes.max(1));
            }
        }
        Ok(ferry)
    }

    /// Records the launches of `work` as one graph, which can be launched again.
    pub fn record(&self, work: impl FnOnce() -> Result<()>) -> Result<Graph> {
        let (mut graph, mut exec) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the capture ends below in every case.
        self.api.check("record", unsafe { (self.api.begin_capture)(self.stream, 2) })?;
        self.recording.set([true, false]);
        let done = work();
        self.recording.set([false; 2]);
        // SAFETY: pointers are to handles.
        let ended = unsafe { (self.api.end_capture)(self.stream, &mut graph) };
        done?;
        self.api.check("record", ended)?;
        // SAFETY: as above; the graph is not used any more.
        let code = unsafe {
            let code = (self.api.instantiate)(&mut exec, graph, 0);
            (self.api.destroy_graph)(graph);
            code
        };
        self.api.check("record", code)?;
        Ok(Graph { exec, api: self.api })
    }

    /// Launches a graph.
    pub fn replay(&self, graph: &Graph) -> Result<()> {
        // SAFETY: both handles are valid.
        let code = unsafe { (self.api.launch_graph)(graph.exec, self.stream) };
        self.api.check("start an iteration", code)
    }

    /// Waits until all launches have finished.
    pub fn wait(&self) -> Result<()> {
        // SAFETY: the stream is valid.
        self.api.check("finish an iteration", unsafe { (self.api.synchronize)(self.stream) })
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        // SAFETY: nothing is launched after these are dropped.
        unsafe {
            (self.api.current)(self.context);
            (self.api.synchronize)(self.stream);
            if !self.module.is_null() {
                (self.api.unload)(self.module);
            }
            self.events.iter().for_each(|&event| {
                (self.api.destroy_event)(event);
            });
            (self.api.destroy_stream)(self.beside);
            (self.api.destroy_stream)(self.stream);
        }
    }
}

/// Threads in a block, as the plain kernels assume.
pub const THREADS: u32 = 128;

/// `CUlaunchAttribute` of cuda.h.
#[repr(C, align(8))]
struct Attribute {
    id: c_uint,
    value: [c_uint; 17],
}

/// `CUlaunchConfig` of cuda.h.
#[repr(C)]
struct Config {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    stream: Handle,
    attributes: *const Attribute,
    count: c_uint,
}

type LaunchEarly =
    unsafe extern "C" fn(*const Config, Handle, *mut *mut c_void, *mut *mut c_void) -> c_int;

/// Drivers record early launches from CUDA 12.3 on.
const CAN_RECORD_EARLY: c_int = 12030;

/// A kernel.
pub struct Kernel {
    function: Handle,
    threads: u32,
    shared: u32,
    waits: bool,
}

impl Kernel {
    /// A kernel that itself waits for the one before it: its blocks may start early.
    pub fn that_waits(self, waits: bool) -> Kernel {
        Kernel { waits, ..self }
    }
}

// SAFETY: a handle that belongs to the process.
unsafe impl Send for Kernel {}

/// Launches that were recorded.
pub struct Graph {
    exec: Handle,
    api: &'static Api,
}

// SAFETY: a handle that belongs to the process.
unsafe impl Send for Graph {}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: not used any more.
        unsafe { (self.api.destroy_exec)(self.exec) };
    }
}

/// Memory on the card.
pub struct Memory {
    /// Where it starts.
    pub address: Address,
    bytes: usize,
    api: &'static Api,
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: not used any more; the driver waits for kernels that use it.
        unsafe { (self.api.free)(self.address) };
    }
}

/// Moves bytes between the card and pinned memory of the host, beside the card's other work.
pub struct Ferry {
    api: &'static Api,
    stream: Handle,
    events: [Handle; 2],
    /// From the card, and to it: on the host, how many, on the card.
    pinned: [*mut c_void; 2],
    sizes: [usize; 2],
    memory: [Memory; 2],
}

// SAFETY: handles and memory that belong to the process.
unsafe impl Send for Ferry {}

impl Ferry {
    /// Where the bytes to send are packed on the card, and where those that were received arrive.
    pub fn addresses(&self) -> [Address; 2] {
        [self.memory[0].address, self.memory[1].address]
    }

    /// Begins to move the packed bytes to the host, once all launches so far have finished.
    pub fn send(&mut self, card: &Card) -> Result<()> {
        card.follow(self.events[0], card.stream, self.stream)?;
        // SAFETY: both are that long, and the host's is not read before this has finished: see `sent`.
        let code = unsafe {
            let (to, from) = (self.pinned[0], self.memory[0].address);
            (self.api.begin_download)(to, from, self.sizes[0], self.stream)
        };
        self.api.check("give data to other processes", code)
    }

    /// Waits for the bytes.
    pub fn sent(&self) -> Result<&[u8]> {
        self.wait()?;
        // SAFETY: it is that long, and no copy is under way.
        Ok(unsafe { std::slice::from_raw_parts(self.pinned[0].cast(), self.sizes[0]) })
    }

    /// Where the bytes that were received go on the host.
    pub fn inbox(&mut self) -> Result<&mut [u8]> {
        self.wait()?;
        // SAFETY: as above.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.pinned[1].cast(), self.sizes[1]) })
    }

    /// Begins to move them to the card.
    pub fn receive(&mut self) -> Result<()> {
        // SAFETY: both are that long, and the host's is not written before this has finished: see `inbox`.
        let code = unsafe {
            let (to, from) = (self.memory[1].address, self.pinned[1]);
            (self.api.begin_upload)(to, from, self.sizes[1], self.stream)
        };
        self.api.check("take data of other processes", code)
    }

    /// Launches a kernel once they are there.
    pub fn launch<J>(
        &self,
        card: &Card,
        kernel: &Kernel,
        blocks: u32,
        job: &J,
        now: u32,
    ) -> Result<()> {
        card.launch_on(self.stream, kernel, [blocks, 1], job, now)
    }

    /// Lets the card's later launches wait for all of this.
    pub fn join(&self, card: &Card) -> Result<()> {
        card.follow(self.events[1], self.stream, card.stream)
    }

    fn wait(&self) -> Result<()> {
        // SAFETY: the stream is valid.
        self.api.check("reach other processes", unsafe { (self.api.synchronize)(self.stream) })
    }
}

impl Drop for Ferry {
    fn drop(&mut self) {
        // SAFETY: nothing uses them any more once the stream is done; what was not made is null.
        unsafe {
            if !self.stream.is_null() {
                (self.api.synchronize)(self.stream);
                (self.api.destroy_stream)(self.stream);
            }
            for &event in self.events.iter().filter(|event| !event.is_null()) {
                (self.api.destroy_event)(event);
            }
            for &pinned in self.pinned.iter().filter(|pinned| !pinned.is_null()) {
                (self.api.free_pinned)(pinned);
            }
        }
    }
}
