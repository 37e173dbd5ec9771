import type {OpenOptions, Source} from './trivelet.js';

/** A volume's stream to the bytes of a NIfTI-1 file, with the header of the one that it was made of, if it was. */
export declare function load_volume(source: Source, options?: OpenOptions): Promise<ArrayBuffer>;
/** Makes a Niivue object load .tvl. */
export declare function use_trivelet(
  niivue: {useLoader(loader: (source: any) => Promise<ArrayBuffer>, from: string, to: string): void},
  options?: OpenOptions): void;
