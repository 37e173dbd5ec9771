// The page: opens what is dropped, chosen or named, and connects controls to film.js and volume.js.
// Query: src=ADDRESS opens it; threads=N; fit=0 begins at full size; size, layers, rate, frame set the controls.
import {Film} from './film.js';
import {Sound} from './sound.js';
import {open, default_threads} from './trivelet.js';
import {Volume} from './volume.js';

const $ = id => document.getElementById(id);
const query = new URLSearchParams(location.search);
let stream, film, volume, opened = 0;

function complain(error) {
  $('error').textContent = error ? error.message || String(error) : '';
  $('error').hidden = !error;
}
// Runs what may fail. What was asked of a stream before another one was opened is no failure.
const tell = async action => {
  let mine;
  try {
    const work = action();  // which may open another one
    mine = opened;
    return await work;
  } catch (error) {
    if (mine === undefined || mine === opened) complain(error);
  }
};

const bytes_text = n => n < 1000 ? `${n} bytes` : n < 1e6 ? `${(n / 1e3).toFixed(1)} kB` : `${(n / 1e6).toFixed(2)} MB`;
const time_text = seconds => `${Math.floor(seconds / 60)}:${(seconds % 60).toFixed(2).padStart(5, '0')}`;

function show_controls() {
  $('hint').hidden = !!(film || volume);
  $('picture').hidden = $('film').hidden = !film;
  $('planes').hidden = $('window').hidden = !volume;
  $('scale').hidden = !(film || volume) || !!stream?.volume?.prediction;
  $('map').hidden = !(film || volume);
  $('rate-label').hidden = !film;
  $('loud-label').hidden = !film?.sound;
}

function status() {
  if (!stream) return;
  const part = (100 * stream.fetched / stream.size).toFixed(1);
  const parts = [`<b>${bytes_text(stream.fetched)}</b> of ${bytes_text(stream.size)} read (${part} %)`,
    `${stream.requests} requests`];
  if (film) {
    const v = stream.video, c = film.counts, d = film.drawn;
    parts.unshift(`${v.width}×${v.height}, ${v.format}` + (stream.stream.lossless ? ', lossless' : ''));
    const layers = d?.layers ? `, ${d.layers} of ${stream.stream.layers} layers` : '';
    if (d) parts.push(`shown at ${d.video.width}×${d.video.height}` + layers);
    if (c.decode_ms) parts.push(`decoding ${(1000 * c.frames / c.decode_ms).toFixed(0)} frames/s`);
    if (film.playing || c.shown) parts.push(`${c.shown} shown, ${c.late} left out`);
    if (film.sound_text) parts.push(film.sound_text);
  } else if (volume) {
    const v = stream.volume;
    const error = v.exact ? ', exact' : v.has_bound ? `, error ≤ ${v.max_error}` : '';
    parts.unshift(`${v.width}×${v.height}×${v.slices}${error}${v.prediction ? ', predicted' : ''}`);
    const times = volume.results?.map(r => r.decode_ms.toFixed(0));
    if (times) parts.push(`planes decoded in ${times.join(', ')} ms`);
  }
  parts.push(`${stream.threads} thread${stream.threads > 1 ? 's' : ''}, ${(stream.heap / 2 ** 20).toFixed(0)} MiB`);
  $('status').innerHTML = parts.join(' · ');
  draw_map();
}

// Which parts of the file were read.
function draw_map() {
  const context = $('map').getContext('2d'), width = $('map').width;
  context.fillStyle = '#2b3138';
  context.fillRect(0, 0, width, 1);
  context.fillStyle = '#4fb3a5';
  for (const [at, size] of stream.read || []) {
    const from = Math.floor(at / stream.size * width);
    context.fillRect(from, 0, Math.max(1, Math.ceil((at + size) / stream.size * width) - from), 1);
  }
}

function film_changed() {
  if (!film) return;
  $('play').textContent = film.playing ? 'Pause' : 'Play';
  $('seek').value = film.frame_at(film.pts);
  $('time').value = `${time_text((film.pts - film.first_pts) * film.unit)} / ${time_text(film.seconds)}`;
  show_values();
  status();
}

function show_values() {
  const whole = film ? stream.video : stream.volume;
  const layers = +$('layers').value, size = +$('size').value, rate = +$('rate').value;
  $('layers-value').value = layers >= +$('layers').max ? 'all layers' : `${layers} of ${$('layers').max}`;
  $('size-value').value = size ? `1/${2 ** size}` : `${whole.width}×${whole.height}`;
  if (!film) return;
  const full = whole.frame_rate_num / whole.frame_rate_den;
  $('rate-value').value = full ? `${(full / 2 ** rate).toFixed(2)}/s` : `1/${2 ** rate}`;
}

const request = () => ({
  reduce: +$('size').value, temporal_reduce: +$('rate').value,
  layers: +$('layers').value >= +$('layers').max ? 0 : +$('layers').value,
});

function set_scales(levels, temporal_levels) {
  const said = (name, other) => query.has(name) ? +query.get(name) : other;
  Object.assign($('layers'), {max: stream.stream.layers, value: said('layers', stream.stream.layers)});
  $('layers-label').hidden = stream.stream.layers < 2;
  Object.assign($('size'), {max: levels, value: said('size', 0)});
  Object.assign($('rate'), {max: temporal_levels, value: said('rate', 0)});
}

async function begin_film() {
  if (!stream.gops.length) throw new Error('the film has no whole GOP');
  film = new Film(stream, $('picture'), film_changed);
  const mine = film, {sound, text} = await Sound.of(stream);
  if (mine !== film) return;  // another one was opened
  film.sound_text = text;
  if (sound) {
    sound.end = film.end_pts * film.unit;
    sound.set_volume($('loud').value / 100);
    sound.on_error = error => {
      film.sound_text = `no sound: ${error.message}`;
      status();
    };
    film.sound = sound;
  }
  if (query.has('canvas')) film.fixed = query.get('canvas').split('x').map(Number);
  set_scales(stream.stream.spatial_levels, stream.stream.temporal_levels);
  Object.assign($('seek'), {max: film.frames - 1, value: 0});
  show_controls();
  if (!query.has('size') && query.get('fit') !== '0') $('size').value = film.fitting();
  Object.assign(film.request, request());
  if (query.has('frame')) await film.show(film.pts_of(+query.get('frame')));
  else await film.show_first();
}

function volume_changed() {
  if (!volume) return;
  ['x', 'y', 'z'].forEach((name, i) => {
    $(name).value = volume.at[i];
    $(name + '-value').value = volume.at[i];
  });
  const number = value => Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3);
  $('width-value').value = number(volume.window);
  $('level-value').value = number(volume.level);
  $('number-value').value = volume.number;
  show_values();
  status();
}

async function begin_volume() {
  const v = stream.volume;
  volume = new Volume(stream, $('planes'), volume_changed);
  set_scales(v.prediction ? 0 : stream.stream.spatial_levels, 0);
  [v.width, v.height, v.slices].forEach((size, i) => Object.assign($('xyz'[i]), {max: size - 1, value: volume.at[i]}));
  Object.assign($('number'), {max: v.volumes - 1, value: 0});
  $('number').parentElement.hidden = v.volumes < 2;
  if (query.has('window')) volume.window = +query.get('window');
  if (query.has('level')) volume.level = +query.get('level');
  const range = v.largest - v.least;
  $('width').value = 1000 * volume.window / range;
  $('level').value = 1000 * (volume.level - v.least) / range;
  show_controls();
  await volume.show();
}

async function open_source(source) {
  const mine = ++opened;
  complain();
  film?.close();
  volume?.close();
  stream?.close();
  film = volume = stream = undefined;
  show_controls();
  $('status').textContent = 'opening …';
  const threads = +query.get('threads') || default_threads();
  const came = await open(source, {threads}).catch(error => {
    if (mine === opened) $('status').textContent = '';
    throw error;
  });
  if (mine !== opened) return came.close();
  stream = came;
  await (stream.is_volume ? begin_volume() : begin_film());
}

$('file').onchange = event => event.target.files[0] && tell(() => open_source(event.target.files[0]));
$('form').onsubmit = event => {
  event.preventDefault();
  if ($('url').value) tell(() => open_source($('url').value));
};
addEventListener('dragover', event => {
  event.preventDefault();
  $('stage').classList.add('over');
});
addEventListener('dragleave', () => $('stage').classList.remove('over'));
addEventListener('drop', event => {
  event.preventDefault();
  $('stage').classList.remove('over');
  const file = event.dataTransfer.files[0], text = event.dataTransfer.getData('text/uri-list');
  if (file || text) tell(() => open_source(file || text.split('\n')[0]));
});
addEventListener('resize', () => film && !film.playing && film.drawn && tell(() => film.show(film.pts)));
$('play').onclick = () => film.playing ? film.pause() : tell(() => film.play());
$('back').onclick = () => tell(() => film.step(-1));
$('on').onclick = () => tell(() => film.step(1));
$('seek').oninput = event => tell(() => film.show(film.pts_of(+event.target.value)));
$('loud').oninput = event => film?.sound?.set_volume(event.target.value / 100);
$('speed').onchange = event => { film.set_speed(+event.target.value); };
addEventListener('keydown', event => {
  if (!film || /INPUT|SELECT|BUTTON/.test(event.target.tagName)) return;
  const button = {' ': 'play', ArrowLeft: 'back', ArrowRight: 'on'}[event.key];
  if (button) event.preventDefault(), $(button).click();
});
for (const name of ['layers', 'size', 'rate'])
  $(name).oninput = () => {
    show_values();
    if (film) return tell(() => film.set(request()));
    Object.assign(volume, {reduce: +$('size').value, layers: request().layers});
    tell(() => volume.show());
  };
['x', 'y', 'z'].forEach((name, i) => {
  $(name).oninput = event => {
    volume.at[i] = +event.target.value;
    tell(() => volume.show());
  };
});
$('number').oninput = event => {
  volume.number = +event.target.value;
  tell(() => volume.show());
};
$('most').onchange = event => {
  volume.most = event.target.checked;
  tell(() => volume.show());
};
for (const name of ['width', 'level'])
  $(name).oninput = () => {
    const {least, largest} = stream.volume;
    volume.window = Math.max(1e-9, $('width').value / 1000) * (largest - least);
    volume.level = least + $('level').value / 1000 * (largest - least);
    volume.paint();
    volume_changed();
  };

// For tests: what the page has open.
window.trivelet = {
  get film() { return film; },
  get volume() { return volume; },
  get stream() { return stream; },
  open: source => open_source(source),
  ready: query.has('src') ? tell(() => open_source(query.get('src'))) : Promise.resolve(),
};
