// Owns the module and one stream, in a thread of its own (a worker of a browser or of node). To {id, command, ...} it
// answers {id, result} or {id, error}. trivelet.js is what programs use.
'use strict';
const is_node = typeof importScripts === 'undefined';
const port = is_node ? require('node:worker_threads').parentPort : self;
if (is_node) Object.assign(globalThis, require('./ranges.js'), require('./matroska.js'));
else importScripts('ranges.js', 'matroska.js');

let module_;          // of Emscripten
let bytes;            // Ranges of the stream, or the Matroska file that holds it
let kind;             // 'video' or 'volume'
let gops = [];        // of a video
let unit = 0;         // of its times, in seconds
let head;             // bytes of the stream before its first GOP
let decoding = '';    // the request that packets are decoded for
let last_gop = -2;    // whose packet was given last

const kOutOfMemory = 7;

function fail(result) {
  const text = module_.UTF8ToString(module_._web_error()) || module_.UTF8ToString(module_._web_result_text(result));
  throw Object.assign(new Error(text), {result});
}
function check(result) {
  if (result) fail(result);
}
// What counts, or -result.
function counted(result) {
  if (result < 0) fail(-result);
  return result;
}

// Memory of the module with `size` bytes during f(pointer).
function with_memory(size, f) {
  const pointer = module_._malloc(Math.max(1, size));
  if (!pointer) throw Object.assign(new Error(`there is no memory for ${size} bytes`), {result: kOutOfMemory});
  try {
    return f(pointer);
  } finally {
    module_._free(pointer);
  }
}

// Brings and gives what the plan asks for; all ranges that it asked for.
async function bring() {
  const all = [];
  for (;;) {
    const count = counted(module_._web_ranges());
    if (count === 0) return all;
    const ranges = [];
    for (let i = 0; i < count; ++i) ranges.push([module_._web_range_offset(i), module_._web_range_size(i)]);
    await bytes.need(ranges);
    for (const [at, size] of ranges)
      with_memory(size, pointer => {
        bytes.copy(at, size, module_.HEAPU8, pointer);
        check(module_._web_give(at, pointer, size));
      });
    all.push(...ranges);
  }
}

const kStream = ['is_volume', 'layers', 'spatial_levels', 'temporal_levels', 'gops', 'motion', 'lossless', 'profile',
  'complete', 'has_index', 'gop_frames', 'index_rebuilt'];
const kVideo = ['width', 'height', 'colour_model', 'bits', 'log2_chroma_w', 'log2_chroma_h', 'alpha', 'is_signed',
  'frame_rate_num', 'frame_rate_den', 'time_base_num', 'time_base_den', 'primaries', 'transfer', 'matrix', 'range',
  'rotation', 'mirrored', 'frames', 'frame_bytes', 'sample_aspect_num', 'sample_aspect_den', 'chroma_location'];
const kGop = ['first_frame', 'frames', 'offset', 'bytes', 'pts', 'duration', 'key'];
const kVolume = ['width', 'height', 'slices', 'volumes', 'channels', 'type', 'big_endian', 'part_width', 'part_height',
  'part_slices', 'least', 'largest', 'exact', 'has_bound', 'max_error', 'prediction', 'part_bytes'];
const named = (names, get) => Object.fromEntries(names.map((name, i) => [name, get(i)]));

function video() {
  const v = named(kVideo, module_._web_video);
  v.planes = [];
  for (let c = 0; module_._web_plane(c, 0) > 0; ++c)
    v.planes.push({width: module_._web_plane(c, 0), height: module_._web_plane(c, 1),
      sample_bytes: module_._web_plane(c, 2)});
  return v;
}

const counts = () => ({
  fetched: bytes.fetched, requests: bytes.requests, rounds: bytes.rounds, size: (bytes.file || bytes).size,
  heap: module_.HEAPU8.length, read: bytes.pieces.map(piece => [piece.at, piece.bytes.length]),
});

async function load({threads, base, max_memory}) {
  const name = threads > 1 ? 'trivelet-threads' : 'trivelet-one';
  const options = {threads, locateFile: file => base + file, mainScriptUrlOrBlob: base + name + '.js'};
  if (is_node) {
    delete options.mainScriptUrlOrBlob;
    // The loader of Emscripten 3.1.6 would take node's own fetch for a browser's.
    options.wasmBinary = require('node:fs').readFileSync(base + name + '.wasm');
    globalThis.TriveletModule = require(base + name + '.js');
  } else {
    importScripts(base + name + '.js');
  }
  const start = performance.now();
  module_ = await TriveletModule(options);
  check(module_._web_init(threads, max_memory));
  return {version: module_.UTF8ToString(module_._web_version()), milliseconds: performance.now() - start};
}

async function open({source}) {
  const file = new Ranges(source);
  kind = undefined;
  decoding = '';
  last_gop = -2;
  await file.begin();
  bytes = is_matroska(file) ? await Matroska.open(file) : file;
  module_._web_request(0, 0, 0, 0);
  check(module_._web_plan_index(bytes.size));
  await bring();
  check(module_._web_open_index());
  const stream = named(kStream, module_._web_stream);
  stream.writer = module_.UTF8ToString(module_._web_text(1));
  stream.settings = module_.UTF8ToString(module_._web_text(0));
  if (stream.is_volume) {
    kind = 'volume';
    module_._web_box(0, 0, 0, 1, 1, 1, 0);
    check(module_._web_plan_box(bytes.size));
    await bring();
    check(module_._web_open_box());
    return {stream, volume: named(kVolume, module_._web_volume), ...counts()};
  }
  kind = 'video';
  gops = [];
  for (let i = 0; i < stream.gops; ++i) {
    const gop = named(kGop, what => module_._web_gop(i, what));
    gop.layer_bytes = [];
    for (let layer = 0; layer < stream.layers; ++layer) gop.layer_bytes.push(module_._web_gop(i, kGop.length + layer));
    gops.push(gop);
  }
  const said = {...video(), format: module_.UTF8ToString(module_._web_format()), peak: module_._web_peak()};
  unit = said.time_base_num / said.time_base_den;
  head = undefined;
  if (gops.length) {
    head = new Uint8Array(gops[0].offset);
    await bytes.need([[0, head.length]]);
    bytes.copy(0, head.length, head, 0);
  }
  const sound = (bytes.sound || []).map(({number, ...track}) => track);
  return {stream, video: said, gops, sound, ...counts()};
}

// Packets of a track of sound that begin in [from, to), in seconds as frames have them.
async function packets({track = 0, from, to}) {
  const sound = bytes.sound?.[track];
  if (!sound) throw new Error(`there is no sound ${track}; the film has ${bytes.sound?.length || 0}`);
  const came = await bytes.packets(sound, from, to, gops[0].pts * unit);
  bytes.trim();
  return {packets: came, ...counts()};
}

// Layers of a GOP that `budget` bytes hold; 0 = all.
function layers_for(gop, budget) {
  let sum = gop.bytes - gop.layer_bytes.reduce((all, n) => all + n, 0), layers = 0;
  if (!budget || gop.bytes <= budget) return 0;
  while (layers < gop.layer_bytes.length && (layers === 0 || sum + gop.layer_bytes[layers] <= budget))
    sum += gop.layer_bytes[layers++];
  return layers;
}

// A packet of which only `ranges` are there; nothing else of it is looked at.
function give_packet(gop, ranges) {
  return with_memory(gop.bytes, pointer => {
    module_.HEAPU8.fill(0, pointer, pointer + gop.bytes);
    for (const [at, size] of ranges) {
      const from = Math.max(at, gop.offset), end = Math.min(at + size, gop.offset + gop.bytes);
      if (from < end) bytes.copy(from, end - from, module_.HEAPU8, pointer + from - gop.offset);
    }
    return counted(module_._web_packet(pointer, gop.bytes));
  });
}

function begin_packets(reduce, temporal_reduce, layers) {
  const request = [reduce, temporal_reduce, layers].join();
  if (decoding === request) return;
  last_gop = -2;
  decoding = '';
  with_memory(head.length, pointer => {
    module_.HEAPU8.set(head, pointer);
    check(module_._web_open_packets(pointer, head.length));
  });
  decoding = request;
}

// `wanted` frames of a packet, or as many as it gives, copied one by one: the module's memory never gets smaller.
function frames(wanted) {
  const v = video(), samples = new Uint8Array(wanted * v.frame_bytes), pts = [], durations = [];
  let copy_ms = 0;
  while (pts.length < wanted && counted(module_._web_read()) > 0) {
    const start = performance.now(), pointer = module_._web_memory();
    samples.set(module_.HEAPU8.subarray(pointer, pointer + v.frame_bytes), pts.length * v.frame_bytes);
    pts.push(module_._web_pts());
    durations.push(module_._web_duration());
    copy_ms += performance.now() - start;
  }
  const count = pts.length;
  return {
    video: v, count, pts, durations, copy_ms,
    samples: count < wanted ? samples.slice(0, count * v.frame_bytes).buffer : samples.buffer,
  };
}

// The frames of a GOP. reduce, temporal_reduce: halvings; layers: 0 = all; budget: bytes that choose the layers.
async function gop({number, reduce = 0, temporal_reduce = 0, layers = 0, budget = 0}) {
  const start = performance.now(), g = gops[number];
  if (!g) throw new Error(`there is no GOP ${number}; the film has ${gops.length}`);
  if (budget) layers = layers_for(g, budget);
  module_._web_request(reduce, temporal_reduce, layers, 0);
  // All of it in one request instead of its header first.
  if (!reduce && !temporal_reduce && !layers) await bytes.need([[g.offset, g.bytes]]);
  const all = bytes.size, follows = last_gop === number - 1 && decoding === [reduce, temporal_reduce, layers].join();
  let ranges = [[g.offset, g.bytes]];
  if (reduce || temporal_reduce || layers || (!g.key && !follows)) {
    check(module_._web_plan_frames(all, g.first_frame, g.first_frame + g.frames));
    ranges = await bring();
  }
  const fetched = performance.now();
  let read;
  try {
    begin_packets(reduce, temporal_reduce, layers);
    if (last_gop !== number - 1) {
      check(module_._web_flush());
      if (!g.key && number > 0) give_packet(gops[number - 1], ranges);
    }
    last_gop = number;
    read = frames(give_packet(g, ranges));
  } catch (error) {
    decoding = '';
    throw error;
  }
  bytes.trim();
  return {
    number, layers, ...read, fetch_ms: fetched - start, decode_ms: performance.now() - fetched - read.copy_ms,
    ...counts(),
  };
}

// The voxels of a box. x to depth are of the full size; reduce: halvings; layers: 0 = all.
async function box({x, y, z, width, height, depth, volume = 0, reduce = 0, layers = 0}) {
  const start = performance.now();
  module_._web_request(reduce, 0, layers, 0);
  module_._web_box(x, y, z, width, height, depth, volume);
  check(module_._web_plan_box(bytes.size));
  await bring();
  const fetched = performance.now();
  check(module_._web_open_box());
  counted(module_._web_read_box());
  const decoded = performance.now(), v = named(kVolume, module_._web_volume), pointer = module_._web_memory();
  const voxels = module_.HEAPU8.slice(pointer, pointer + v.part_bytes).buffer;
  bytes.trim();
  return {
    width: v.part_width, height: v.part_height, depth: v.part_slices, channels: v.channels, type: v.type,
    big_endian: v.big_endian, voxels, fetch_ms: fetched - start, decode_ms: decoded - fetched, ...counts(),
  };
}

// The header of the file that the volume was read from.
async function envelope() {
  const size = module_._web_envelope(), pointer = module_._web_envelope_data();
  return {envelope: module_.HEAPU8.slice(pointer, pointer + size).buffer};
}

const commands = {load, open, gop, packets, box, envelope};
const buffers = result => ['samples', 'voxels', 'envelope'].map(name => result[name]).filter(Boolean)
  .concat((result.packets || []).map(packet => packet.bytes));

let queue = Promise.resolve();
const answer = message => {
  queue = queue.then(async () => {
    try {
      if (message.command !== 'load' && !module_) throw new Error('the module was not loaded');
      const result = await commands[message.command](message);
      port.postMessage({id: message.id, result}, buffers(result));
    } catch (error) {
      port.postMessage({id: message.id, error: error.message || String(error), result_code: error.result || 0});
    }
  });
};
if (is_node) port.on('message', answer);
else port.onmessage = event => answer(event.data);
