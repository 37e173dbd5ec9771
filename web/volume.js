// Shows a volume: three planes through a voxel, window and level, largest values along each axis. Planes are boxes of
// the stream, so that only their bytes are read.
import {voxel_array} from './trivelet.js';

// Voxels that the largest values are looked for in; larger volumes are halved until they fit, where the stream can be.
const kMostVoxels = 2 ** 25;

export class Volume {
  constructor(stream, parent, on_change) {
    this.stream = stream;
    this.on_change = on_change;
    this.serial = 0;
    this.reduce = 0;
    this.layers = 0;
    this.most = false;
    this.number = 0;
    const v = stream.volume;
    this.at = [v.width >> 1, v.height >> 1, v.slices >> 1];
    this.window = Math.max(v.largest - v.least, Number.MIN_VALUE);
    this.level = (v.largest + v.least) / 2;
    this.planes = ['axial', 'coronal', 'sagittal'].map((name, i) => {
      const [figure, canvas, text] = ['figure', 'canvas', 'figcaption'].map(tag => document.createElement(tag));
      figure.append(canvas, text);
      parent.append(figure);
      canvas.onclick = event => this.pick(i, event);
      return {name, canvas, text};
    });
  }

  box(plane) {
    const {width, height, slices} = this.stream.volume, [x, y, z] = this.at;
    return [{x: 0, y: 0, z, width, height, depth: 1}, {x: 0, y, z: 0, width, height: 1, depth: slices},
      {x, y: 0, z: 0, width: 1, height, depth: slices}][plane];
  }

  // Where a click says that the other planes lie.
  pick(plane, event) {
    const rect = event.target.getBoundingClientRect(), {width, height, slices} = this.stream.volume;
    const sizes = [[width, height], [width, slices], [height, slices]][plane];
    const part = [(event.clientX - rect.left) / rect.width, (event.clientY - rect.top) / rect.height];
    if (plane > 0) part[1] = 1 - part[1];  // the last slice is on top
    const at = sizes.map((size, i) => Math.min(size - 1, Math.max(0, Math.floor(size * part[i]))));
    const axes = [[0, 1], [0, 2], [1, 2]][plane];
    axes.forEach((axis, i) => { this.at[axis] = at[i]; });
    this.show();
  }

  async show() {
    const serial = ++this.serial;
    const results = this.most ? await this.largest() : [];
    if (!this.most)
      for (let i = 0; i < 3; ++i) {  // one after the other: there is one decoder
        const request = {volume: this.number, reduce: this.reduce, layers: this.layers};
        const r = await this.stream.box({...this.box(i), ...request});
        if (serial !== this.serial) return;
        const size = [[r.width, r.height], [r.width, r.depth], [r.height, r.depth]][i];
        results.push({values: voxel_array(r), size, channels: r.channels, decode_ms: r.decode_ms});
      }
    if (serial !== this.serial) return;
    this.results = results;
    this.paint();
    this.on_change();
  }

  // Projections of the whole volume, in the smallest halving that fits.
  async largest() {
    const {width, height, slices, prediction, channels} = this.stream.volume;
    let reduce = this.reduce;
    const halved = size => Math.ceil(size / 2 ** reduce);
    const voxels = () => halved(width) * halved(height) * halved(slices) * channels;
    while (!prediction && voxels() > kMostVoxels && reduce < this.stream.stream.spatial_levels) ++reduce;
    const whole = {x: 0, y: 0, z: 0, width, height, depth: slices};
    const r = await this.stream.box({...whole, volume: this.number, reduce, layers: this.layers});
    const values = voxel_array(r), n = r.channels;
    const out = [[r.width, r.height], [r.width, r.depth], [r.height, r.depth]].map(size =>
      ({values: new Float64Array(size[0] * size[1] * n).fill(-Infinity), size, channels: n,
        decode_ms: r.decode_ms / 3}));
    let i = 0;
    for (let z = 0; z < r.depth; ++z)
      for (let y = 0; y < r.height; ++y)
        for (let x = 0; x < r.width; ++x)
          for (let c = 0; c < n; ++c, ++i) {
            const value = Number(values[i]);
            [y * r.width + x, z * r.width + x, z * r.height + y].forEach((to, k) => {
              if (value > out[k].values[to * n + c]) out[k].values[to * n + c] = value;
            });
          }
    return out;
  }

  // Values to grey by window and level. Planes across slices have the last slice on top. Colour where a voxel has three
  // or four scalars.
  paint() {
    const least = this.level - this.window / 2, scale = 255 / this.window, {width, height, slices} = this.stream.volume;
    this.results?.forEach(({values, size, channels}, k) => {
      const {canvas, text, name} = this.planes[k], [columns, rows] = size;
      canvas.width = columns;
      canvas.height = rows;
      const image = new ImageData(columns, rows), colour = channels >= 3;
      for (let row = 0; row < rows; ++row)
        for (let x = 0; x < columns; ++x) {
          const from = (row * columns + x) * channels, to = ((k > 0 ? rows - 1 - row : row) * columns + x) * 4;
          for (let c = 0; c < 3; ++c) image.data[to + c] = (Number(values[from + (colour ? c : 0)]) - least) * scale;
          image.data[to + 3] = 255;
        }
      canvas.getContext('2d').putImageData(image, 0, 0);
      const whole = [[width, height], [width, slices], [height, slices]][k];
      const factor = Math.min(2, 420 / Math.max(...whole));
      canvas.style.width = Math.round(whole[0] * factor) + 'px';
      canvas.style.height = Math.round(whole[1] * factor) + 'px';
      text.textContent = this.most ? `${name}, largest values` : `${name} ${this.at[2 - k]}`;
    });
  }

  close() {
    this.serial++;
    this.planes.forEach(plane => plane.canvas.parentElement.remove());
  }
}
