// The bytes of one file that were read so far, by ranges: of a URL (HTTP byte ranges), a Blob or File, or memory. Used
// by worker.js in browsers (importScripts) and node (require).
'use strict';

class Ranges {
  // source: URL (string), Blob, ArrayBuffer or Uint8Array. limit: bytes that are kept, those used last.
  constructor(source, limit = 96 << 20) {
    this.source = source instanceof ArrayBuffer ? new Uint8Array(source) : source;
    this.limit = limit;
    this.size = -1;
    this.pieces = [];  // {at, bytes, used}, ascending, apart from each other
    this.clock = 0;
    this.fetched = 0;   // bytes
    this.requests = 0;
    this.rounds = 0;    // requests that had to wait for others
  }

  // Reads what most streams need first: `front` bytes from the beginning, as many as a plan asks for, and `tail` from
  // the end, the index of some 900 GOPs, beside each other.
  async begin(front = 65536, tail = 49152) {
    this.rounds++;
    if (typeof this.source !== 'string') {
      this.size = this.source.size ?? this.source.length;
      await this.need([[0, Math.min(front, this.size)], [Math.max(0, this.size - tail), Math.min(tail, this.size)]]);
      this.rounds = 1;
      return;
    }
    const asked = [`bytes=0-${front - 1}`, `bytes=-${tail}`].map(range => this.request(range));
    const first = await asked[0];
    if (first.whole) {
      asked[1].catch(() => {});
      return;
    }
    const last = await asked[1].catch(error => {
      // A file shorter than the tail may be answered with an error; what is missing is asked for later.
      if (this.size > tail) throw error;
    });
    void last;
  }

  // One request; what came is kept. `whole`: the server knows no ranges and sent everything.
  async request(range) {
    this.requests++;
    let answer;
    try {
      answer = await fetch(this.source, {headers: {Range: range}});
    } catch (error) {
      throw new Error(`${this.source}: ${error.message}`);
    }
    if (!answer.ok) throw new Error(`${this.source}: the server answers ${answer.status} ${answer.statusText}`);
    const bytes = new Uint8Array(await answer.arrayBuffer());
    this.fetched += bytes.length;
    if (answer.status !== 206) {
      this.take_size(bytes.length);
      this.limit = Math.max(this.limit, bytes.length);  // or it would all be asked for once more
      this.keep(0, bytes);
      return {whole: true};
    }
    const said = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(answer.headers.get('Content-Range') || '');
    if (!said) throw new Error(`${this.source}: the server does not say which bytes it sends (Content-Range)`);
    this.take_size(+said[3]);
    if (+said[2] - +said[1] + 1 !== bytes.length)
      throw new Error(`${this.source}: ${bytes.length} bytes came for ${said[0]}`);
    this.keep(+said[1], bytes);
    return {whole: false};
  }

  take_size(size) {
    if (this.size >= 0 && this.size !== size)
      throw new Error(`${this.source}: the file has changed from ${this.size} to ${size} bytes; open it again`);
    this.size = size;
  }

  // Parts of [at, at + size) that are not there, as [at, size].
  missing(at, size) {
    const out = [], end = at + size;
    for (const piece of this.pieces) {
      if (piece.at >= end || at >= end) break;
      if (piece.at + piece.bytes.length <= at) continue;
      if (piece.at > at) out.push([at, piece.at - at]);
      at = piece.at + piece.bytes.length;
    }
    if (at < end) out.push([at, end - at]);
    return out;
  }

  keep(at, bytes) {
    for (const [from, size] of this.missing(at, bytes.length))
      this.pieces.push({at: from, bytes: bytes.subarray(from - at, from - at + size), used: ++this.clock});
    this.pieces.sort((a, b) => a.at - b.at);
  }

  // Makes all `ranges` ([at, size]) be there. Neighbours less than 16 KiB apart are one request: that is what a round
  // trip costs at some 10 Mbit/s.
  async need(ranges) {
    const runs = [];
    for (const [at, size] of ranges.flatMap(([at, size]) => this.missing(at, size)).sort((a, b) => a[0] - b[0])) {
      const last = runs[runs.length - 1];
      if (last && at - (last[0] + last[1]) < 16384) last[1] = Math.max(last[1], at + size - last[0]);
      else runs.push([at, size]);
    }
    if (runs.length === 0) return;
    this.rounds++;
    await Promise.all(runs.map(([at, size]) => this.read(at, size)));
    for (const [at, size] of ranges)
      if (this.missing(at, size).length)
        throw new Error(`bytes ${at} to ${at + size - 1} of ${this.size} could not be read`);
  }

  async read(at, size) {
    if (typeof this.source === 'string') return this.request(`bytes=${at}-${at + size - 1}`);
    this.requests++;
    this.fetched += size;
    if (this.source instanceof Uint8Array) this.keep(at, this.source.subarray(at, at + size));
    else this.keep(at, new Uint8Array(await this.source.slice(at, at + size).arrayBuffer()));
  }

  // Copies [at, at + size), which need() made be there, to `into` from `to` on.
  copy(at, size, into, to) {
    for (const piece of this.pieces) {
      const from = Math.max(at, piece.at), end = Math.min(at + size, piece.at + piece.bytes.length);
      if (from >= end) continue;
      into.set(piece.bytes.subarray(from - piece.at, end - piece.at), to + from - at);
      piece.used = ++this.clock;
    }
  }

  // Lets go of what was used longest ago.
  trim() {
    let sum = this.pieces.reduce((all, piece) => all + piece.bytes.length, 0);
    if (sum <= this.limit) return;
    for (const piece of [...this.pieces].sort((a, b) => a.used - b.used)) {
      if (sum <= this.limit) break;
      sum -= piece.bytes.length;
      this.pieces.splice(this.pieces.indexOf(piece), 1);
    }
  }
}

if (typeof module !== 'undefined') module.exports = {Ranges};
