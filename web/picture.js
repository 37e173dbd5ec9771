// Draws frames of any pixel format by WebGL 2: planes of 8 to 16 bits as integer textures, matrix, range, chroma
// places, HDR to SDR, alpha over a board, rotation. The formulas are those of apps/play/renderer.cpp.
const kVertex = `#version 300 es
uniform ivec2 turn;   // cosine and sine of the rotation
uniform float mirror;  // -1: left and right change places
out vec2 place;
void main() {
  vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1);
  gl_Position = vec4(corner * 2.0 - 1.0, 0.0, 1.0);
  vec2 centred = vec2(corner.x, 1.0 - corner.y) - 0.5;
  vec2 turned = vec2(turn.x, turn.x) * centred + vec2(turn.y, -turn.y) * centred.yx;
  place = vec2(turned.x * mirror, turned.y) + 0.5;
}`;

// MODEL 0 grey, 1 YUV, 2 RGB; ALPHA 1: there is such a plane, 2: which colours were multiplied by; TRANSFER 16 PQ,
// 18 HLG; WIDE 1: BT.2020 primaries. Integer textures are not filtered by the GPU, so sample_of() does it.
const kFragment = `
precision highp float;
precision highp int;
precision highp usampler2D;
uniform usampler2D planes[4];
uniform float most;  // the largest value of a sample
uniform mat3 to_rgb;
uniform vec3 offset;
uniform vec2 chroma_shift;  // where chroma samples lie, in parts of the picture
uniform vec2 chroma_part;   // how much of their planes the picture covers: less than 1 if its size is odd
uniform float peak;         // brightest light of the film, 1 = 203 cd/m2
uniform int sign_bit;       // of signed samples, which are stored as two's complement
in vec2 place;
out vec4 colour;

float texel(usampler2D plane, ivec2 at, ivec2 size) {
  int value = int(texelFetch(plane, clamp(at, ivec2(0), size - 1), 0).r);
  if (sign_bit != 0) value = (value ^ sign_bit) & (2 * sign_bit - 1);
  return float(value);
}
float sample_of(usampler2D plane, vec2 at) {
  ivec2 size = textureSize(plane, 0);
  vec2 p = at * vec2(size) - 0.5;
  ivec2 i = ivec2(floor(p));
  vec2 f = fract(p);
  float top = mix(texel(plane, i, size), texel(plane, i + ivec2(1, 0), size), f.x);
  float bottom = mix(texel(plane, i + ivec2(0, 1), size), texel(plane, i + 1, size), f.x);
  return mix(top, bottom, f.y) / most;
}

#if TRANSFER != 0
vec3 pq_to_light(vec3 v) {  // SMPTE ST 2084, 1 = 203 cd/m2
  vec3 p = pow(max(v, 0.0), vec3(1.0 / 78.84375));
  return pow(max(p - 0.8359375, 0.0) / (18.8515625 - 18.6875 * p), vec3(1.0 / 0.1593017578125)) * (10000.0 / 203.0);
}
vec3 hlg_to_light(vec3 v) {  // ARIB STD-B67 on a screen of 1000 cd/m2
  vec3 scene = mix(v * v / 3.0, (exp((v - 0.55991073) / 0.17883277) + 0.28466892) / 12.0, step(0.5, v));
  float y = dot(scene, vec3(0.2627, 0.6780, 0.0593));
  return scene * pow(max(y, 1e-6), 0.2) * (1000.0 / 203.0);
}
vec3 to_screen(vec3 light) {  // Reinhard's curve, which leaves the film's peak at white
#if WIDE
  light = mat3(1.6605, -0.1246, -0.0182, -0.5876, 1.1329, -0.1006, -0.0728, -0.0083, 1.1187) * light;
#endif
  light = max(light, 0.0);
  float most_light = max(max(light.r, light.g), light.b);
  light *= (1.0 + most_light / (peak * peak)) / (1.0 + most_light);
  return pow(min(light, 1.0), vec3(1.0 / 2.2));
}
#endif

void main() {
#if MODEL == 0
  vec3 rgb = vec3((sample_of(planes[0], place) - offset.x) * to_rgb[0].r);
#elif MODEL == 1
  vec2 chroma = (place + chroma_shift) * chroma_part;
  vec3 v = vec3(sample_of(planes[0], place), sample_of(planes[1], chroma), sample_of(planes[2], chroma));
  vec3 rgb = to_rgb * (v - offset);
#else
  vec3 rgb = vec3(sample_of(planes[2], place), sample_of(planes[0], place), sample_of(planes[1], place));
#endif
#if TRANSFER == 16
  rgb = to_screen(pq_to_light(rgb));
#elif TRANSFER == 18
  rgb = to_screen(hlg_to_light(rgb));
#endif
#if ALPHA
  float board = mod(floor(gl_FragCoord.x / 8.0) + floor(gl_FragCoord.y / 8.0), 2.0) * 0.2 + 0.4;
  float opaque = sample_of(planes[3], place);
#if ALPHA == 2
  rgb = board * (1.0 - opaque) + rgb;
#else
  rgb = mix(vec3(board), rgb, opaque);
#endif
#endif
  colour = vec4(clamp(rgb, 0.0, 1.0), 1.0);
}`;

// Kr and Kb of ITU-T H.273; pictures that do not say are BT.601 below 720 lines and BT.709 from there on. `height` is
// that of the whole picture, whatever size is decoded.
function luma_weights(video, height) {
  const known = {1: [0.2126, 0.0722], 4: [0.3, 0.11], 5: [0.299, 0.114], 6: [0.299, 0.114], 7: [0.212, 0.087],
    9: [0.2627, 0.0593], 10: [0.2627, 0.0593]};
  return known[video.matrix] || (height < 720 ? [0.299, 0.114] : [0.2126, 0.0722]);
}

export function matrix_of(video, height) {
  const [kr, kb] = luma_weights(video, height), kg = 1 - kr - kb;
  const most = 2 ** video.bits - 1, unit = 2 ** (video.bits - 8);
  const full = video.range === 2 || video.colour_model === 2 || (video.colour_model === 0 && video.range === 0);
  const luma = full ? 1 : most / (219 * unit), chroma = full ? 1 : most / (224 * unit);
  const middle = Math.floor(2 ** video.bits / 2) / most;
  return {
    columns: [luma, luma, luma, 0, -2 * kb * (1 - kb) / kg * chroma, 2 * (1 - kb) * chroma, 2 * (1 - kr) * chroma,
      -2 * kr * (1 - kr) / kg * chroma, 0],
    offset: [full ? 0 : 16 * unit / most, middle, middle],
  };
}

// From the middle of a chroma sample's luma samples to where it lies, in parts of the picture.
function chroma_shift(video) {
  const location = video.chroma_location;  // 1 left, 2 centre, 3 top left, 4 top, 5 bottom left, 6 bottom
  const x = (2 ** video.log2_chroma_w - 1) / 2 / video.width, y = (2 ** video.log2_chroma_h - 1) / 2 / video.height;
  return [[0, 1, 3, 5].includes(location) ? x : 0, location === 3 || location === 4 ? y : location >= 5 ? -y : 0];
}

function chroma_part(video) {
  if (video.colour_model !== 1) return [1, 1];
  return [video.width / (video.planes[1].width << video.log2_chroma_w),
    video.height / (video.planes[1].height << video.log2_chroma_h)];
}

// Columns and rows for display: square pixels, turned.
export function shown_size(video) {
  const known = video.sample_aspect_num > 0 && video.sample_aspect_den > 0;
  const aspect = known ? video.sample_aspect_num / video.sample_aspect_den : 1;
  const size = [Math.max(1, Math.round(video.width * aspect)), video.height];
  return video.rotation % 180 ? size.reverse() : size;
}

export class Picture {
  constructor(canvas) {
    this.canvas = canvas;
    const gl = this.gl = canvas.getContext('webgl2', {alpha: false, antialias: false, preserveDrawingBuffer: true});
    if (!gl) throw new Error('this browser has no WebGL 2');
    this.programs = new Map();
    this.textures = [];
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
    canvas.addEventListener('webglcontextlost', event => event.preventDefault());
    canvas.addEventListener('webglcontextrestored', () => {
      this.programs.clear();
      this.textures = [];
      this.layout = '';
      gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
      if (this.last) this.draw(...this.last);
    });
  }

  program(video) {
    const gl = this.gl, transfer = video.transfer === 16 || video.transfer === 18 ? video.transfer : 0;
    const defines = `#version 300 es\n#define MODEL ${video.colour_model}\n#define ALPHA ${video.alpha}\n` +
      `#define TRANSFER ${transfer}\n#define WIDE ${video.primaries === 9 ? 1 : 0}\n`;
    let program = this.programs.get(defines);
    if (program) return program;
    program = gl.createProgram();
    for (const [type, text] of [[gl.VERTEX_SHADER, kVertex], [gl.FRAGMENT_SHADER, defines + kFragment]]) {
      const shader = gl.createShader(type);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
    this.programs.set(defines, program);
    return program;
  }

  // Textures for the planes of `video`; new ones where sizes change.
  prepare(video) {
    const gl = this.gl, layout = JSON.stringify(video.planes);
    if (layout === this.layout) return;
    this.textures.forEach(texture => gl.deleteTexture(texture));
    this.textures = video.planes.map(plane => {
      const texture = gl.createTexture();
      gl.bindTexture(gl.TEXTURE_2D, texture);
      gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
      gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
      gl.texStorage2D(gl.TEXTURE_2D, 1, plane.sample_bytes === 2 ? gl.R16UI : gl.R8UI, plane.width, plane.height);
      return texture;
    });
    this.layout = layout;
  }

  // A frame whose planes begin at byte `at` of `samples`. whole: the film's video, of full size; peak in cd/m2 or 0.
  draw(video, samples, at, whole, peak) {
    const gl = this.gl, program = this.program(video);
    this.last = [video, samples, at, whole, peak];
    this.prepare(video);
    gl.useProgram(program);
    const uniform = name => gl.getUniformLocation(program, name);
    video.planes.forEach((plane, i) => {
      const size = plane.width * plane.height;
      gl.activeTexture(gl.TEXTURE0 + i);
      gl.bindTexture(gl.TEXTURE_2D, this.textures[i]);
      const [type, data] = plane.sample_bytes === 2 ? [gl.UNSIGNED_SHORT, new Uint16Array(samples, at, size)]
        : [gl.UNSIGNED_BYTE, new Uint8Array(samples, at, size)];
      gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, 0, plane.width, plane.height, gl.RED_INTEGER, type, data);
      at += size * plane.sample_bytes;
      gl.uniform1i(uniform(`planes[${i}]`), i);
    });
    for (let i = video.planes.length; i < 4; ++i) gl.uniform1i(uniform(`planes[${i}]`), 0);
    const m = matrix_of(video, whole.height);
    gl.uniform1f(uniform('most'), 2 ** video.bits - 1);
    gl.uniformMatrix3fv(uniform('to_rgb'), false, m.columns);
    gl.uniform3fv(uniform('offset'), m.offset);
    gl.uniform2fv(uniform('chroma_shift'), chroma_shift(video));
    gl.uniform2fv(uniform('chroma_part'), chroma_part(video));
    gl.uniform1f(uniform('peak'), Math.max(203, peak || 1000) / 203);
    gl.uniform1i(uniform('sign_bit'), video.is_signed ? 2 ** (video.bits - 1) : 0);
    gl.uniform1f(uniform('mirror'), video.mirrored ? -1 : 1);
    gl.uniform2iv(uniform('turn'), [[1, 0], [0, 1], [-1, 0], [0, -1]][(video.rotation / 90) & 3]);
    gl.viewport(0, 0, this.canvas.width, this.canvas.height);
    gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
  }

  // RGBA rows of the canvas from the top down, for tests and snapshots.
  pixels() {
    const gl = this.gl, {width, height} = this.canvas, line = width * 4;
    const rows = new Uint8Array(line * height), out = new Uint8Array(rows.length);
    gl.readPixels(0, 0, width, height, gl.RGBA, gl.UNSIGNED_BYTE, rows);
    for (let y = 0; y < height; ++y) out.set(rows.subarray((height - 1 - y) * line, (height - y) * line), y * line);
    return out;
  }
}
