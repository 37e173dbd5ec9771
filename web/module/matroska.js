// A film in Matroska as the stream that its packets are (FORMAT.md, "In Matroska"), with the interface of Ranges, and
// the packets of its sound. Blocks are looked for where they are needed: the index of the stream, in the last block,
// says which GOPs there are, and the file's cues say in which clusters GOPs begin that refer to none before.
'use strict';

const kIds = {
  segment: 0x18538067, seek_head: 0x114d9b74, seek: 0x4dbb, seek_id: 0x53ab, seek_position: 0x53ac, info: 0x1549a966,
  time_scale: 0x2ad7b1, tracks: 0x1654ae6b, track: 0xae, number: 0xd7, type: 0x83, codec: 0x86, codec_private: 0x63a2,
  codec_delay: 0x56aa, encodings: 0x6d80, audio: 0xe1, rate: 0xb5, channels: 0x9f, bits: 0x6264, cluster: 0x1f43b675,
  time: 0xe7, simple_block: 0xa3, group: 0xa0, block: 0xa1, reference: 0xfb, cues: 0x1c53bb6b, cue: 0xbb,
  cue_time: 0xb3, cue_places: 0xb7, cue_track: 0xf7, cue_cluster: 0xf1,
};
const kWindow = 32768;      // bytes that are read where heads of elements are looked for
const kElementHead = 32;    // of an element, and of a block in it
const kMostMetadata = 16 << 20;  // bytes of one element of metadata
const kBoxHead = 16, kDone = 36;

const is_matroska = file => {
  const bytes = new Uint8Array(4);
  if (file.size >= 4) file.copy(0, 4, bytes, 0);
  return bytes.join() === '26,69,223,163';
};

class Matroska {
  static async open(file) {
    const film = new Matroska(file);
    await film.begin();
    return film;
  }

  constructor(file) {
    this.file = file;
    this.sound = [];    // tracks
    this.places = [];   // of GOPs in the file: {at, size, time}
    this.scale = 1e-3;  // seconds of a tick
  }

  get fetched() { return this.file.fetched; }
  get requests() { return this.file.requests; }
  get rounds() { return this.file.rounds; }
  get pieces() { return this.file.pieces; }
  trim() { this.file.trim(); }

  // ---- elements

  async bytes(at, size) {
    if (size > kMostMetadata) throw new Error(`a Matroska element of ${size} bytes; at most ${kMostMetadata} are read`);
    if (at + size > this.file.size) throw new Error(this.cut());
    await this.file.need([[at, size]]);
    const out = new Uint8Array(size);
    this.file.copy(at, size, out, 0);
    return out;
  }

  cut() {
    return `the Matroska file of ${this.file.size} bytes ends without the film's index: it was cut, or is being ` +
      'written. "trivelet demux FILE.mkv FILE.tvl" makes one';
  }

  // The number at `at` of `bytes`: {value, size}. marked: with its first bit set, as in ids. Infinity: not known.
  static number(bytes, at, marked) {
    let size = 1, mask = 0x80;
    while (size <= 8 && !(bytes[at] & mask)) mask >>= 1, ++size;
    if (size > 8 || at + size > bytes.length) throw new Error('a damaged Matroska element');
    let value = marked ? bytes[at] : bytes[at] & (mask - 1), ones = (bytes[at] & (mask - 1)) === mask - 1;
    for (let i = 1; i < size; ++i) value = value * 256 + bytes[at + i], ones = ones && bytes[at + i] === 255;
    return {value: ones && !marked ? Infinity : value, size};
  }

  static unsigned(bytes) {
    return bytes.reduce((all, byte) => all * 256 + byte, 0);
  }

  // The element at `at` of the file, whose head and first bytes are there then.
  async element(at) {
    const left = this.file.size - at, size = Math.min(kElementHead, left);
    if (left <= 0) throw new Error(this.cut());
    if (this.file.missing(at, size).length) await this.file.need([[at, Math.min(kWindow, left)]]);
    const bytes = new Uint8Array(size);
    this.file.copy(at, size, bytes, 0);
    const id = Matroska.number(bytes, 0, true), length = Matroska.number(bytes, id.size, false);
    return {id: id.value, at, data: at + id.size + length.size, size: length.value, head: bytes};
  }

  // Elements of one whose payload is `bytes`, as [id, payload].
  static *inside(bytes) {
    for (let at = 0; at < bytes.length;) {
      const id = Matroska.number(bytes, at, true), size = Matroska.number(bytes, at + id.size, false);
      const data = at + id.size + size.size;
      yield [id.value, bytes.subarray(data, data + size.value)];
      at = data + size.value;
    }
  }

  // ---- what the file says about itself

  async begin() {
    const ebml = await this.element(0), segment = await this.element(ebml.data + ebml.size);
    if (segment.id !== kIds.segment) throw new Error('a Matroska file without a segment');
    this.end = Math.min(this.file.size, segment.data + segment.size);
    const found = {};  // metadata, by id: places
    let first;         // cluster
    for (let at = segment.data; at < this.end && !first;) {
      const e = await this.element(at);
      if (e.id === kIds.cluster) first = e.at;
      else found[e.id] = e;
      if (e.id === kIds.seek_head)
        for (const [id, bytes] of Matroska.inside(await this.bytes(e.data, e.size)))
          if (id === kIds.seek) {
            const {[kIds.seek_id]: what, [kIds.seek_position]: place} = Object.fromEntries(Matroska.inside(bytes));
            if (what && place && Matroska.unsigned(what) === kIds.cues)
              this.cues_at = segment.data + Matroska.unsigned(place);
          }
      at = e.data + e.size;
    }
    if (!first || !found[kIds.tracks]) throw new Error('a Matroska file without tracks or clusters');
    if (found[kIds.info])
      for (const [id, bytes] of Matroska.inside(await this.payload(found[kIds.info])))
        if (id === kIds.time_scale) this.scale = Matroska.unsigned(bytes) / 1e9;
    this.read_tracks(await this.payload(found[kIds.tracks]), found[kIds.tracks].data);
    await this.read_index(first);
    await this.read_cues(first, segment.data, found[kIds.cues]);
  }

  payload(e) {
    return this.bytes(e.data, e.size);
  }

  read_tracks(bytes, data) {
    for (const [id, entry] of Matroska.inside(bytes)) {
      if (id !== kIds.track) continue;
      const track = Object.fromEntries(Matroska.inside(entry)), number = Matroska.unsigned(track[kIds.number] || []);
      const codec = String.fromCharCode(...(track[kIds.codec] || [])).replace(/\0+$/, '');
      const own = track[kIds.codec_private] || new Uint8Array(0), type = Matroska.unsigned(track[kIds.type] || []);
      if (type === 1 && codec === 'V_MS/VFW/FOURCC' && String.fromCharCode(...own.subarray(16, 20)) === 'TRVL') {
        if (this.video !== undefined) continue;
        if (track[kIds.encodings]) throw new Error('the Trivelet track has content encodings, which it may not have');
        this.video = number;
        this.head_at = data + own.byteOffset - bytes.byteOffset + 40;
        this.head = own.slice(40);
      } else if (type === 2) {
        this.sound.push(Matroska.sound_track(track, number, codec, own));
      }
    }
    if (this.video === undefined) throw new Error('the Matroska file has no Trivelet track');
    this.head = this.head.subarray(0, Matroska.whole_boxes(this.head));
  }

  static sound_track(track, number, codec, own) {
    const audio = Object.fromEntries(Matroska.inside(track[kIds.audio] || new Uint8Array(0)));
    const real = bytes => {
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
      return bytes.length === 8 ? view.getFloat64(0) : bytes.length === 4 ? view.getFloat32(0) : 0;
    };
    const of = (id, other) => audio[id] ? Matroska.unsigned(audio[id]) : other;
    return {
      number, codec, rate: audio[kIds.rate] ? real(audio[kIds.rate]) : 8000, channels: of(kIds.channels, 1),
      bits: of(kIds.bits, 0), delay: Matroska.unsigned(track[kIds.codec_delay] || []) / 1e9,
      encoded: !!track[kIds.encodings], description: own.slice().buffer,
    };
  }

  // Bytes of the signature and of the whole boxes behind it.
  static whole_boxes(bytes) {
    let at = 8;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    for (;;) {
      const next = at + kBoxHead <= bytes.length ? at + kBoxHead + Number(view.getBigUint64(at + 4, true)) : Infinity;
      if (next > bytes.length) return Math.min(at, bytes.length);
      at = next;
    }
  }

  // ---- the index of the stream, in the last block

  async read_index(first) {
    this.gops = [];  // {offset, end, closed} in the stream
    const tail = Math.min(49152, this.file.size), from = this.file.size - tail;
    let index = Matroska.find_index(await this.bytes(from, tail), from);
    if (!index) {
      const blocks = await this.walk({at: first, end: this.end});
      const last = blocks.filter(block => block.track === this.video).pop();
      const bytes = last ? await this.bytes(last.at, last.size) : new Uint8Array(0);
      index = Matroska.find_index(bytes, last?.at);
      if (!index) throw new Error(this.cut());
    }
    const {at, bytes} = index, view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    this.index_at = Number(view.getBigUint64(bytes.length - kDone + kBoxHead + 8, true));
    this.index_place = {at, size: bytes.length};
    this.size = this.index_at + bytes.length;
    if (bytes[kBoxHead] !== 1) throw new Error(`the index of the film has version ${bytes[kBoxHead]}, not 1`);
    let p = kBoxHead + 1, end = 0;
    const varint = () => {
      for (let value = 0, unit = 1; ; unit *= 128) {
        if (p >= bytes.length) throw new Error('the index of the film is damaged');
        value += (bytes[p] & 127) * unit;
        if (bytes[p++] < 128) return value;
      }
    };
    for (let count = varint(); this.gops.length < count;) {
      const next = varint() + p, offset = end + varint();
      end = offset + varint();
      varint(), varint();
      this.gops.push({offset, closed: bytes[p] !== 2});
      p = next;
    }
    this.gops.forEach((gop, i) => { gop.end = this.gops[i + 1]?.offset ?? this.index_at; });
  }

  // The boxes Indx and Done in bytes that stand at `from` of the file: {at, bytes}.
  static find_index(bytes, from) {
    const named = (at, name) => at >= 0 && [...name].every((c, i) => bytes[at + i] === c.charCodeAt(0));
    for (let at = bytes.length - kBoxHead - kDone; at >= 0; --at) {
      if (!named(at, 'Indx')) continue;
      const size = Number(new DataView(bytes.buffer, bytes.byteOffset + at + 4).getBigUint64(0, true));
      const done = at + kBoxHead + size;
      if (done + kDone <= bytes.length && named(done, 'Done'))
        return {at: from + at, bytes: bytes.slice(at, done + kDone)};
    }
    return undefined;
  }

  // ---- blocks

  // Stretches of the file: from a cluster in which a GOP begins that refers to none before to the next such one.
  async read_cues(first, segment, found) {
    this.stretches = [{at: first, end: this.end, gop: 0, time: -Infinity}];
    let cues = found;
    if (!cues && this.cues_at < this.end) cues = await this.element(this.cues_at);
    if (cues?.id !== kIds.cues) return;
    const places = [];
    for (const [id, cue] of Matroska.inside(await this.payload(cues))) {
      if (id !== kIds.cue) continue;
      let time = 0, at;
      for (const [what, bytes] of Matroska.inside(cue)) {
        if (what === kIds.cue_time) time = Matroska.unsigned(bytes);
        if (what !== kIds.cue_places) continue;
        const place = Object.fromEntries(Matroska.inside(bytes));
        if (place[kIds.cue_cluster] && Matroska.unsigned(place[kIds.cue_track] || []) === this.video)
          at = segment + Matroska.unsigned(place[kIds.cue_cluster]);
      }
      if (at !== undefined) places.push({at, time: time * this.scale});
    }
    const closed = this.gops.flatMap((gop, number) => gop.closed ? [number] : []);
    if (places.length !== closed.length) return;  // all blocks are looked at, then
    this.stretches = [];
    places.forEach(({at, time}, i) => {
      if (this.stretches.at(-1)?.at !== at) this.stretches.push({at, gop: closed[i], time, end: this.end});
    });
    this.stretches.forEach((stretch, i) => { stretch.end = this.stretches[i + 1]?.at ?? this.end; });
  }

  // The blocks of a stretch: {track, time, at, size, key, laced}.
  async walk(stretch) {
    if (stretch.blocks) return stretch.blocks;
    const blocks = [];
    let ticks = 0;
    for (let at = stretch.at; at < stretch.end;) {
      const e = await this.element(at);
      at = e.id === kIds.cluster ? e.data : e.data + e.size;
      if (e.id === kIds.time) ticks = Matroska.unsigned(e.head.subarray(e.data - e.at, e.data - e.at + e.size));
      else if (e.id === kIds.simple_block) blocks.push(this.block(e, ticks, !!(this.flags(e) & 0x80)));
      else if (e.id === kIds.group) await this.walk_group(e, ticks, blocks);
    }
    stretch.blocks = blocks;
    return blocks;
  }

  async walk_group(group, ticks, blocks) {
    let block, key = true;
    for (let at = group.data; at < group.data + group.size;) {
      const e = await this.element(at);
      if (e.id === kIds.block) block = e;
      if (e.id === kIds.reference) key = false;
      at = e.data + e.size;
    }
    if (block) blocks.push(this.block(block, ticks, key));
  }

  flags(e) {
    return e.head[e.data - e.at + Matroska.number(e.head, e.data - e.at, false).size + 2];
  }

  block(e, ticks, key) {
    const from = e.data - e.at, track = Matroska.number(e.head, from, false), at = from + track.size;
    const own = new DataView(e.head.buffer, e.head.byteOffset).getInt16(at), skipped = track.size + 3;
    return {
      track: track.value, time: (ticks + own) * this.scale, at: e.data + skipped, size: e.size - skipped, key,
      laced: !!(this.flags(e) & 6),
    };
  }

  // Makes places[number] be there.
  async find(number) {
    let i = this.stretches.findLastIndex(stretch => stretch.gop <= number);
    // A cluster may begin with GOPs that refer to those before.
    for (; i < this.stretches.length && !this.places[number]; ++i) await this.note(this.stretches[i]);
    const place = this.places[number], gop = this.gops[number];
    if (!place || place.size !== gop.end - gop.offset)
      throw new Error(`block ${number} of the film is not what its index says; "trivelet demux" rebuilds the index`);
  }

  // Numbers the blocks of the film in a stretch: the first key block is that of its GOP.
  async note(stretch) {
    const blocks = (await this.walk(stretch)).filter(block => block.track === this.video);
    const key = blocks.findIndex(block => block.key);
    blocks.forEach((block, i) => {
      const skipped = block.key ? this.head.length : 0;
      this.places[stretch.gop + i - key] = {at: block.at + skipped, size: block.size - skipped, time: block.time};
    });
  }

  // ---- as Ranges

  // Parts of [at, at + size) of the stream: {place, from, size, number}; `place` is where they begin in the file.
  parts(at, size) {
    const out = [];
    const add = (begin, end, place, number) => {
      const from = Math.max(at, begin), to = Math.min(at + size, end);
      if (from < to) out.push({from, size: to - from, number, place: place && place.at + from - begin});
    };
    add(0, this.head.length, {at: this.head_at});
    this.gops.forEach((gop, i) => add(gop.offset, gop.end, this.places[i], i));
    add(this.index_at, this.size, this.index_place);
    return out;
  }

  async need(ranges) {
    const all = () => ranges.flatMap(([at, size]) => this.parts(at, size));
    for (const {number, place} of all()) if (place === undefined) await this.find(number);
    await this.file.need(all().map(part => [part.place, part.size]));
  }

  copy(at, size, into, to) {
    for (const part of this.parts(at, size)) this.file.copy(part.place, part.size, into, to + part.from - at);
  }

  // ---- sound

  // Packets of a track that begin in [from, to), in seconds of the film, whose first frame is shown at `begin`.
  async packets(track, from, to, begin) {
    await this.find(0);
    const shift = this.places[0].time - begin + track.delay, out = [];
    for (const [i, stretch] of this.stretches.entries()) {
      const next = this.stretches[i + 1]?.time ?? Infinity;
      if ((i && stretch.time > to + shift + 1) || next < from + shift - 1) continue;
      for (const block of await this.walk(stretch)) {
        const time = block.time - shift;
        if (block.track !== track.number || time < from || time >= to) continue;
        if (block.laced) throw new Error('the sound is laced, which is not played');
        out.push({time, at: block.at, size: block.size});
      }
    }
    await this.file.need(out.map(packet => [packet.at, packet.size]));
    return out.map(({time, at, size}) => {
      const bytes = new Uint8Array(size);
      this.file.copy(at, size, bytes, 0);
      return {time, bytes: bytes.buffer};
    });
  }
}

if (typeof module !== 'undefined') module.exports = {Matroska, is_matroska};
