// Trivelet's streams in browsers and node: films by GOPs, volumes by boxes. Decoding runs in a worker.
//
//   const stream = await open('film.tvl');            // or a File, a Blob, bytes
//   const {samples, video, count} = await stream.gop({number: 0, reduce: 1});
//
// trivelet.d.ts describes everything.
const is_node = typeof process !== 'undefined' && !!process.versions?.node;
const here = new URL('./module/', import.meta.url);

async function start_worker() {
  if (!is_node) return new Worker(new URL('./module/worker.js', import.meta.url));
  const {Worker: NodeWorker} = await import('node:worker_threads');
  return new NodeWorker(new URL('./module/worker.js', import.meta.url));
}

// Threads that a stream gets when nobody says: one where pages share no memory with workers.
export function default_threads() {
  if (is_node) return 1;
  return globalThis.crossOriginIsolated ? Math.min(16, navigator.hardwareConcurrency || 1) : 1;
}

export class StreamError extends Error {
  // result: a tvl_result of trivelet.h, 0 where the bytes could not be read.
  constructor(message, result) {
    super(message);
    this.name = 'StreamError';
    this.result = result;
  }
}

export class Stream {
  #worker;
  #waiting = new Map();
  #next = 1;

  static async open(source, {threads = default_threads(), max_memory = 3 * 2 ** 30} = {}) {
    const stream = new Stream();
    stream.#worker = await start_worker();
    stream.#listen();
    try {
      const base = is_node ? decodeURIComponent(here.pathname) : here.href;
      stream.module = await stream.#call('load', {threads, base, max_memory});
      stream.threads = threads;
      const url = typeof source === 'string' && !is_node ? new URL(source, document.baseURI).href : source;
      const opened = await stream.#call('open', {source: url});
      Object.assign(stream, opened);  // stream, video, gops and sound, or volume; fetched, requests, rounds, size, heap
      return stream;
    } catch (error) {
      stream.close();
      throw error;
    }
  }

  #listen() {
    const take = ({id, result, error, result_code}) => {
      const [resolve, reject] = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error !== undefined) return reject(new StreamError(error, result_code));
      for (const name of ['fetched', 'requests', 'rounds', 'size', 'heap', 'read'])
        if (name in result) this[name] = result[name];
      resolve(result);
    };
    const lost = event => {
      for (const [, reject] of this.#waiting.values())
        reject(new StreamError(`the worker ended: ${event.message || 'it could not be started'}`, 1));
      this.#waiting.clear();
    };
    if (is_node) {
      this.#worker.on('message', take);
      this.#worker.on('error', lost);
    } else {
      this.#worker.onmessage = event => take(event.data);
      this.#worker.onerror = lost;
    }
  }

  #call(command, values = {}) {
    if (!this.#worker) return Promise.reject(new StreamError('the stream is closed', 2));
    return new Promise((resolve, reject) => {
      this.#waiting.set(this.#next, [resolve, reject]);
      this.#worker.postMessage({id: this.#next++, command, ...values});
    });
  }

  get is_volume() {
    return !!this.stream.is_volume;
  }
  // The frames of GOP `number`, decoded.
  gop(request) {
    return this.#call('gop', request);
  }
  // Packets of a track of sound, as the file has them, that begin in [from, to): seconds of the film.
  async packets(request) {
    return (await this.#call('packets', request)).packets;
  }
  // A box of a volume, decoded.
  box(request) {
    return this.#call('box', request);
  }
  // Header of the file that the volume was read from.
  async envelope() {
    return (await this.#call('envelope')).envelope;
  }
  // The GOP that shows a time, in units of the time base.
  gop_at(pts) {
    let low = 0, high = this.gops.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.gops[middle].pts <= pts) low = middle;
      else high = middle - 1;
    }
    return low;
  }
  close() {
    this.#worker?.terminate();
    this.#worker = undefined;
    for (const [, reject] of this.#waiting.values()) reject(new StreamError('the stream was closed', 8));
    this.#waiting.clear();
  }
}

export const open = (source, options) => Stream.open(source, options);

// The array that voxels of a type of trivelet.h (TVL_U8 ... TVL_F64) are, in the byte order of this machine.
const kArrays = [Uint8Array, Int8Array, Uint16Array, Int16Array, Uint32Array, Int32Array, BigUint64Array, BigInt64Array,
  Float32Array, Float64Array];
export function voxel_array({voxels, type, big_endian}) {
  const size = kArrays[type].BYTES_PER_ELEMENT;
  if (big_endian && size > 1) {
    const bytes = new Uint8Array(voxels.slice(0));
    for (let i = 0; i < bytes.length; i += size) bytes.subarray(i, i + size).reverse();
    voxels = bytes.buffer;
  }
  return new kArrays[type](voxels);
}
