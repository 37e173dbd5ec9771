// A loader for NiiVue: volumes as NIfTI-1, with the header of the NIfTI file that they were made of, if they were.
//
//   import {use_trivelet} from 'trivelet/niivue';
//   use_trivelet(nv);                                    // nv.useLoader(load_volume, 'tvl', 'nii')
//   await nv.loadVolumes([{url: 'brain.tvl'}]);
import {open, voxel_array} from './trivelet.js';

// Codes of NIfTI for TVL_U8 ... TVL_F64, and bits of a scalar.
const kDatatypes = [[2, 8], [256, 8], [512, 16], [4, 16], [768, 32], [8, 32], [1280, 64], [1024, 64], [16, 32],
  [64, 64]];
// A header of NIfTI-1 and the four bytes that say that no extensions follow.
const kHeader = 352;

class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }
  byte() {
    if (this.at >= this.bytes.length) throw new Error('the header of the file that the volume was made of is damaged');
    return this.bytes[this.at++];
  }
  varint() {
    let value = 0, scale = 1, byte;
    do {
      byte = this.byte();
      value += (byte & 127) * scale;
      scale *= 128;
    } while (byte >= 128 && scale < 2 ** 56);
    return value;
  }
  take() {
    const size = this.varint(), from = this.at;
    if (size > this.bytes.length - from)
      throw new Error('the header of the file that the volume was made of is damaged');
    this.at += size;
    return this.bytes.subarray(from, this.at);
  }
}

async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// The bytes before the scalars of the first file, if it was NIfTI-1 ("volh" of FORMAT.md); else undefined.
async function nifti_head(envelope) {
  const bytes = new Uint8Array(envelope);
  if (bytes.length < 3 || bytes[0] !== 1 || bytes[1] > 1) return undefined;
  const reader = new Reader(bytes[1] ? await inflate(bytes.subarray(2)) : bytes.subarray(2));
  if (new TextDecoder().decode(reader.take()) !== 'nifti-1' || reader.varint() < 1) return undefined;
  reader.take();    // name
  reader.varint();  // flags
  reader.varint();  // bytes of scalars
  const head = reader.take();
  return head.length >= 348 ? head.slice() : undefined;
}

// A header for voxels of one millimetre.
function plain_head(volume) {
  const head = new Uint8Array(kHeader), view = new DataView(head.buffer), [datatype, bits] = kDatatypes[volume.type];
  const extents = [volume.width, volume.height, volume.slices, volume.volumes];
  view.setInt32(0, 348, true);
  const colours = volume.channels === 3 ? 128 : 2304;  // RGB24, RGBA32
  if (volume.channels > 1 && (volume.type !== 0 || volume.channels < 3))
    throw new Error(`voxels of ${volume.channels} scalars are not shown; only colours of 8 bits are`);
  if (Math.max(...extents) > 32767)
    throw new Error(`a volume of ${extents.join('x')} does not fit into NIfTI-1; an extent is at most 32767`);
  view.setInt16(40, volume.volumes > 1 ? 4 : 3, true);
  extents.forEach((size, i) => view.setInt16(42 + 2 * i, size, true));
  for (let i = 4; i < 7; ++i) view.setInt16(42 + 2 * i, 1, true);
  view.setInt16(70, volume.channels > 1 ? colours : datatype, true);
  view.setInt16(72, bits * volume.channels, true);
  for (let i = 0; i < 8; ++i) view.setFloat32(76 + 4 * i, 1, true);
  view.setFloat32(108, kHeader, true);
  view.setFloat32(112, 1, true);  // slope
  view.setInt16(254, 2, true);    // sform: aligned, one millimetre
  [280, 300, 320].forEach(at => view.setFloat32(at, 1, true));
  view.setUint8(123, 2);  // millimetres
  head.set([0x6e, 0x2b, 0x31, 0], 344);
  return head;
}

// The header of a single file: a pair's scalars stand in another one.
function single_file(head) {
  const pair = head[345] === 0x69;  // "ni1", not "n+1"
  const out = new Uint8Array(pair ? kHeader : Math.max(kHeader, head.length));
  out.set(pair ? head.subarray(0, 348) : head);
  out[345] = 0x2b;
  const view = new DataView(out.buffer), little = view.getInt32(0, true) === 348;
  view.setFloat32(108, out.length, little);
  return out;
}

// What NiiVue asks of a loader: the bytes of a .tvl (or what open() of trivelet.js takes) to those of a .nii.
export async function load_volume(source, options) {
  const stream = await open(source, options);
  try {
    if (!stream.is_volume) throw new Error('the stream holds a film, no volume');
    const v = stream.volume, kept = await nifti_head(await stream.envelope());
    const head = kept ? single_file(kept) : plain_head(v), parts = [];
    for (let volume = 0; volume < v.volumes; ++volume) {
      const box = await stream.box({x: 0, y: 0, z: 0, width: v.width, height: v.height, depth: v.slices, volume});
      // As the header says, whose file had the same order; else as this machine has them.
      parts.push(kept ? new Uint8Array(box.voxels) : new Uint8Array(voxel_array(box).buffer));
    }
    const out = new Uint8Array(head.length + parts.reduce((sum, part) => sum + part.length, 0));
    out.set(head);
    let at = head.length;
    for (const part of parts) {
      out.set(part, at);
      at += part.length;
    }
    return out.buffer;
  } finally {
    stream.close();
  }
}

// Makes a Niivue object load .tvl.
export function use_trivelet(niivue, options) {
  niivue.useLoader(source => load_volume(source, options), 'tvl', 'nii');
}
