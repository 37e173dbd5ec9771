// Plays a film: which GOPs to have, which frame a moment shows, clock and speed. Draws through picture.js.
import {Picture, shown_size} from './picture.js';

// GOPs kept decoded: the one that is shown and the next. A GOP of 1080p is 100 MB.
const kKept = 2;
// What the first picture may read beside beginning and end of the file; the rest of its GOP follows.
const kFirstBytes = 160 * 1024;

export class Film {
  constructor(stream, canvas, on_change) {
    this.stream = stream;
    this.canvas = canvas;
    this.picture = new Picture(canvas);
    this.on_change = on_change;
    this.request = {reduce: 0, temporal_reduce: 0, layers: 0};
    this.gops = new Map();  // decoded, or promises of it, by number and request
    this.playing = false;
    this.speed = 1;
    this.serial = 0;  // of what is asked to be shown: older answers are dropped
    this.counts = {shown: 0, late: 0, frames: 0, decode_ms: 0, fetch_ms: 0, upload_ms: 0, uploads: 0};
    const last = stream.gops.at(-1);
    this.first_pts = stream.gops[0].pts;
    this.end_pts = last.pts + last.duration;
    this.pts = this.first_pts;
    this.unit = stream.video.time_base_num / stream.video.time_base_den;  // seconds
  }

  get seconds() {
    return (this.end_pts - this.first_pts) * this.unit;
  }
  get frames() {
    const last = this.stream.gops.at(-1);
    return last.first_frame + last.frames;
  }

  // Number of the frame of the film that a moment shows, and back; exact where all frames of a GOP last equally long.
  frame_at(pts) {
    const gop = this.stream.gops[this.stream.gop_at(pts)];
    const inside = Math.floor((pts - gop.pts) * gop.frames / Math.max(1, gop.duration) + 1e-6);
    return gop.first_frame + Math.min(gop.frames - 1, Math.max(0, inside));
  }
  pts_of(frame) {
    const gop = this.stream.gops.findLast(g => g.first_frame <= frame) || this.stream.gops[0];
    return gop.pts + Math.round((frame - gop.first_frame) * gop.duration / gop.frames);
  }

  set(request) {
    Object.assign(this.request, request);
    return this.show(this.pts);
  }

  key(number, request) {
    return [number, request.reduce, request.temporal_reduce, request.layers].join('/');
  }

  // The decoded GOP, from what is kept or from the worker.
  need(number, request = this.request) {
    const key = this.key(number, request);
    let gop = this.gops.get(key);
    if (!gop) {
      gop = {promise: this.stream.gop({number, ...request})};
      gop.promise.then(decoded => {
        gop.decoded = decoded;
        this.counts.frames += decoded.count;
        this.counts.decode_ms += decoded.decode_ms;
        this.counts.fetch_ms += decoded.fetch_ms;
      }, () => this.gops.delete(key));
    } else {
      this.gops.delete(key);
    }
    this.gops.set(key, gop);
    while (this.gops.size > kKept) this.gops.delete(this.gops.keys().next().value);
    return gop;
  }

  // Index of the frame of a decoded GOP that a moment shows.
  index_at(decoded, pts) {
    let index = 0;
    while (index + 1 < decoded.count && decoded.pts[index + 1] <= pts) ++index;
    return index;
  }

  draw(decoded, pts) {
    if (!decoded.count) return;
    const index = this.index_at(decoded, pts), start = performance.now();
    this.resize();
    const whole = this.stream.video;
    this.picture.draw(decoded.video, decoded.samples, index * decoded.video.frame_bytes, whole, whole.peak);
    this.counts.upload_ms += performance.now() - start;
    this.counts.uploads++;
    this.drawn = {number: decoded.number, index, pts: decoded.pts[index], video: decoded.video, layers: decoded.layers};
  }

  // The canvas has the film's size in pixels or, if that is smaller, the window's.
  resize() {
    const [width, height] = shown_size(this.stream.video), ratio = window.devicePixelRatio || 1;
    const stage = this.canvas.parentElement, high = Math.max(200, stage.clientHeight - 16);
    const part = Math.min(1, (stage.clientWidth - 16) / width, high / height);
    const css = [Math.max(1, Math.round(width * part)), Math.max(1, Math.round(height * part))];
    const fitting = css.map((size, i) => Math.max(1, Math.min([width, height][i], Math.round(size * ratio))));
    const [columns, rows] = this.fixed || fitting;
    if (this.canvas.width !== columns || this.canvas.height !== rows)
      [this.canvas.width, this.canvas.height] = [columns, rows];
    this.canvas.style.width = css[0] + 'px';
    this.canvas.style.height = css[1] + 'px';
  }

  // The size that fills the canvas: how often to halve.
  fitting() {
    this.resize();
    const [width] = shown_size(this.stream.video);
    let reduce = 0;
    while (reduce < this.stream.stream.spatial_levels && (width >> (reduce + 1)) >= this.canvas.width) ++reduce;
    return reduce;
  }

  // The first picture: with the layers that a few bytes hold, and then with all.
  async show_first() {
    this.resize();
    const gop = this.stream.gops[0];
    if (gop.bytes > kFirstBytes && !this.request.layers && this.stream.stream.layers > 1) {
      const serial = ++this.serial;
      const start = performance.now();
      const quick = await this.stream.gop({number: 0, ...this.request, budget: kFirstBytes});
      if (serial !== this.serial) return;
      this.draw(quick, this.pts);
      const {fetched, rounds, requests, layers} = quick;
      this.quick = {fetched, rounds, requests, layers, ms: performance.now() - start};
      this.on_change();
    }
    await this.show(this.pts);
  }

  async show(pts) {
    const serial = ++this.serial;
    this.pts = Math.min(Math.max(pts, this.first_pts), this.end_pts - 1);
    const decoded = await this.need(this.stream.gop_at(this.pts)).promise;
    if (serial !== this.serial) return;
    this.draw(decoded, this.pts);
    this.on_change();
  }

  async step(frames) {
    this.pause();
    const frame = Math.min(this.frames - 1, Math.max(0, this.frame_at(this.pts) + frames));
    await this.show(this.pts_of(frame));
  }

  // Playing goes on from where it is.
  set_speed(speed) {
    this.speed = speed;
    this.serial++;
  }

  pause() {
    if (!this.playing) return;
    this.playing = false;
    this.on_change();
  }

  // How many frames stand between `last` and frame `index` of GOP `number`, at the frame rate that is asked for; none
  // after a jump back.
  left_out(last, number, index) {
    if (number === last.number) return Math.max(0, index - last.index - 1);
    if (number < last.number) return 0;
    const part = 2 ** this.request.temporal_reduce, between = this.stream.gops.slice(last.number + 1, number);
    const whole = between.reduce((all, gop) => all + Math.ceil(gop.frames / part), 0);
    return last.decoded.count - 1 - last.index + whole + index;
  }

  // The sound of a film that is played from `pts` on; at the film's own speed alone.
  sound_from(pts) {
    if (this.sound && this.speed === 1) this.sound.start(pts * this.unit);
    else this.sound?.stop();
  }

  // Plays to the end or until pause(). A GOP that is late stops the clock; show() while it plays is a jump.
  async play() {
    if (this.playing) return;
    this.playing = true;
    if (this.pts >= this.end_pts - 1) this.pts = this.first_pts;
    Object.assign(this.counts, {shown: 0, late: 0});
    const began = performance.now();
    let serial = this.serial, from, since, last;
    const begin = pts => {
      from = pts, since = performance.now();
      this.sound_from(pts);
    };
    begin(this.pts);
    try {
      while (this.playing) {
        if (serial !== this.serial) serial = this.serial, last = undefined, begin(this.pts);
        const pts = from + (performance.now() - since) / 1000 * this.speed / this.unit;
        if (pts >= this.end_pts) {
          if (last) this.counts.late += this.left_out(last, this.stream.gops.length, 0);
          break;
        }
        const number = this.stream.gop_at(pts), gop = this.need(number);
        if (!gop.decoded) {
          this.sound?.stop();
          await gop.promise;
          begin(pts);
          continue;
        }
        if (number + 1 < this.stream.gops.length) this.need(number + 1).promise.catch(() => {});
        const index = this.index_at(gop.decoded, pts);
        if (!last || last.number !== number || last.index !== index || last.decoded !== gop.decoded) {
          if (last) this.counts.late += this.left_out(last, number, index);
          last = {number, index, decoded: gop.decoded};
          this.pts = pts;
          this.draw(gop.decoded, pts);
          this.counts.shown++;
          this.on_change();
        }
        await new Promise(resolve => requestAnimationFrame(resolve));
      }
    } finally {
      this.sound?.stop();
      this.counts.seconds = (performance.now() - began) / 1000;
      this.playing = false;
      this.on_change();
    }
  }

  close() {
    this.pause();
    this.serial++;
    this.gops.clear();
    this.sound?.close();
  }
}
