/** A .tvl, or a film in Matroska: a URL (browsers: read by byte ranges), a Blob or File, or the bytes themselves. */
export type Source = string | Blob | ArrayBuffer | Uint8Array;

export interface OpenOptions {
  /** 1: the module without threads. Default: cores, at most 16, where the page is cross-origin isolated; else 1. */
  threads?: number;
  /** Bytes that decoding may take; larger streams are refused. Default: 3 GiB. */
  max_memory?: number;
}

export declare function open(source: Source, options?: OpenOptions): Promise<Stream>;
export declare function default_threads(): number;

/** What failed, with the text of the library, which names the value seen, the limit and what to do. */
export declare class StreamError extends Error {
  /** A tvl_result of trivelet.h; 0 or undefined where bytes could not be read. */
  result?: number;
}

/** What a stream says about itself. Numbers of truth are 0 or 1, as in trivelet.h, and so are all that follow. */
export interface StreamInfo {
  is_volume: number; layers: number; spatial_levels: number; temporal_levels: number; gops: number; motion: number;
  lossless: number; profile: number; complete: number; has_index: number; gop_frames: number; index_rebuilt: number;
  writer: string; settings: string;
}

export interface Plane { width: number; height: number; sample_bytes: number }

/** A tvl_video. Samples of more than 8 bits have two bytes, little endian. */
export interface Video {
  width: number; height: number; colour_model: number; bits: number; log2_chroma_w: number; log2_chroma_h: number;
  alpha: number; is_signed: number; frame_rate_num: number; frame_rate_den: number; time_base_num: number;
  time_base_den: number; primaries: number; transfer: number; matrix: number; range: number; rotation: number;
  mirrored: number; frames: number; frame_bytes: number; sample_aspect_num: number; sample_aspect_den: number;
  chroma_location: number;
  /** Grey; Y, U, V; or G, B, R; then alpha. */
  planes: Plane[];
}

/** The video of a whole stream. */
export interface WholeVideo extends Video {
  /** FFmpeg's name of the pixel format. */
  format: string;
  /** The brightest light in cd/m2 as far as the stream says; 0 = not known. */
  peak: number;
}

export interface Gop {
  first_frame: number; frames: number; offset: number; bytes: number; pts: number; duration: number; key: number;
  /** Bytes of each quality layer. */
  layer_bytes: number[];
}

export interface VolumeInfo {
  width: number; height: number; slices: number; volumes: number; channels: number; type: number; big_endian: number;
  least: number; largest: number; exact: number; has_bound: number; max_error: number; prediction: number;
}

/** What has been read and taken up to now. */
export interface Counts {
  fetched: number; requests: number; rounds: number; size: number;
  /** Bytes of the module's memory. */
  heap: number;
  /** Ranges that are kept: [offset, bytes]. */
  read: [number, number][];
}

export interface GopRequest {
  number: number;
  /** Halve width and height so many times; 0. */
  reduce?: number;
  /** Halve the frame rate so many times; 0. */
  temporal_reduce?: number;
  /** So many quality layers; 0 = all. */
  layers?: number;
  /** Instead of layers: as many as so many bytes hold; 0 = all. */
  budget?: number;
}

export interface DecodedGop extends Counts {
  number: number; layers: number; video: Video; count: number; pts: number[]; durations: number[];
  /** `count` frames of video.frame_bytes, one after the other, each plane after plane without gaps. */
  samples: ArrayBuffer;
  fetch_ms: number; decode_ms: number; copy_ms: number;
}

/** A track of sound of a film in Matroska. */
export interface SoundTrack {
  /** Matroska's name of the codec: A_OPUS, A_AAC, ... */
  codec: string;
  rate: number; channels: number;
  /** Of a sample; 0 = not said. */
  bits: number;
  /** Seconds that the decoder is late, which are taken off the times of packets. */
  delay: number;
  /** Packets are compressed once more, which nothing here undoes. */
  encoded: boolean;
  /** Matroska's CodecPrivate. */
  description: ArrayBuffer;
}

export interface PacketsRequest {
  /** 0, the first one. */
  track?: number;
  /** Seconds: packets that begin in [from, to). Frames are shown at pts times time_base_num / time_base_den. */
  from: number; to: number;
}

export interface BoxRequest {
  /** In voxels of the full size. */
  x: number; y: number; z: number; width: number; height: number; depth: number;
  /** Of several volumes; 0. */
  volume?: number;
  reduce?: number;
  layers?: number;
}

export interface DecodedBox extends Counts {
  width: number; height: number; depth: number; channels: number;
  /** TVL_U8 ... TVL_F64 of trivelet.h. */
  type: number;
  big_endian: number;
  voxels: ArrayBuffer;
  fetch_ms: number; decode_ms: number;
}

/** A stream that is open, in a worker of its own. Requests are answered one after the other. */
export declare class Stream implements Counts {
  static open(source: Source, options?: OpenOptions): Promise<Stream>;
  fetched: number; requests: number; rounds: number; size: number; heap: number; read: [number, number][];
  threads: number;
  module: {version: string; milliseconds: number};
  stream: StreamInfo;
  /** Of a film. */
  video?: WholeVideo;
  gops?: Gop[];
  sound?: SoundTrack[];
  /** Of a volume. */
  volume?: VolumeInfo;
  readonly is_volume: boolean;
  gop(request: GopRequest): Promise<DecodedGop>;
  packets(request: PacketsRequest): Promise<{time: number; bytes: ArrayBuffer}[]>;
  box(request: BoxRequest): Promise<DecodedBox>;
  /** The header of the file that the volume was read from; empty where it was not kept. */
  envelope(): Promise<ArrayBuffer>;
  /** Number of the GOP that shows a time, in units of the time base. */
  gop_at(pts: number): number;
  /** Ends the worker; what was asked for fails. */
  close(): void;
}

export type Voxels = Uint8Array | Int8Array | Uint16Array | Int16Array | Uint32Array | Int32Array | BigUint64Array |
  BigInt64Array | Float32Array | Float64Array;
/** The voxels of a box as numbers. */
export declare function voxel_array(box: {voxels: ArrayBuffer; type: number; big_endian: number}): Voxels;
