import type {Video, WholeVideo} from './trivelet.js';

/** Draws decoded frames to a canvas by WebGL 2. */
export declare class Picture {
  constructor(canvas: HTMLCanvasElement);
  /** A frame that begins at byte `at` of `samples`. `whole`: the stream's video; `peak`: its light in cd/m2, or 0. */
  draw(video: Video, samples: ArrayBuffer, at: number, whole: WholeVideo, peak: number): void;
  /** RGBA, rows from the top down. */
  pixels(): Uint8Array;
}
/** Columns and rows for display: square pixels, turned. */
export declare function shown_size(video: Video): [number, number];
