// Plays a track of sound beside a film: packets are fetched as they are needed, decoded by the browser (WebCodecs) and
// put where the film's clock will be.

// Matroska's names, and WebCodecs' for them.
const kCodecs = {
  A_OPUS: 'opus', A_VORBIS: 'vorbis', A_FLAC: 'flac', 'A_MPEG/L3': 'mp3', A_AAC: 'mp4a.40.2',
  'A_AAC/MPEG4/LC': 'mp4a.40.2', 'A_PCM/INT/LIT': 'pcm-s',
};
const kDescribed = /^(vorbis|flac|mp4a)/;  // these need what Matroska keeps as CodecPrivate
const kAhead = 3, kAtOnce = 1.5;           // seconds
const kLead = 0.1;                         // seconds before a moment that decoders need to get there

function configuration(track) {
  let codec = track.encoded ? undefined : kCodecs[track.codec];
  if (codec === 'pcm-s') codec = track.bits === 8 ? 'pcm-u8' : `pcm-s${track.bits}`;
  if (!codec) return undefined;
  const said = {codec, sampleRate: Math.round(track.rate), numberOfChannels: track.channels};
  // Opus without it: packets as they are; with it their beginning would be cut off after each jump.
  if (kDescribed.test(codec)) said.description = track.description;
  return said;
}

export class Sound {
  // The first track that this browser decodes: {sound, text}. Without one the text says why; '' where there is none.
  static async of(stream) {
    const tracks = stream.sound || [];
    for (const [number, track] of tracks.entries()) {
      const said = configuration(track);
      if (!said || !globalThis.AudioDecoder) continue;
      const answer = await AudioDecoder.isConfigSupported(said).catch(() => ({}));
      if (answer.supported) return {sound: new Sound(stream, number, said), text: `sound: ${said.codec}`};
    }
    return {text: tracks.length ? `no sound: this browser does not decode ${tracks.map(t => t.codec).join(', ')}` : ''};
  }

  constructor(stream, number, configuration) {
    this.stream = stream;
    this.number = number;
    this.configuration = configuration;
    this.volume = 1;
    this.run = 0;  // of start(): what older ones still do has no effect
    this.playing = [];
  }

  set_volume(volume) {
    this.volume = volume;
    if (this.gain) this.gain.gain.value = volume;
  }

  // Plays from a second of the film on, at once.
  start(seconds) {
    this.stop();
    if (!this.context) {
      this.context = new AudioContext();
      this.gain = this.context.createGain();
      this.gain.gain.value = this.volume;
      this.gain.connect(this.context.destination);
    }
    this.context.resume().catch(() => {});
    const run = ++this.run;
    this.zero = this.context.currentTime - seconds;  // second 0 of the film on the context's clock
    const decoder = new AudioDecoder({
      output: data => {
        if (run === this.run) this.put(data);
        data.close();
      },
      error: error => this.fail(run, error),
    });
    this.decoder = decoder;
    decoder.configure(this.configuration);
    this.feed(run, decoder, seconds - kLead).catch(error => this.fail(run, error));
  }

  fail(run, error) {
    if (run !== this.run) return;
    this.stop();
    this.on_error?.(error);
  }

  async feed(run, decoder, from) {
    for (let fed = from; run === this.run; ) {
      const ahead = fed - (this.context.currentTime - this.zero);
      if (ahead > kAhead) {
        await new Promise(resolve => setTimeout(resolve, 1000 * (ahead - kAhead) + 50));
        continue;
      }
      const packets = await this.stream.packets({track: this.number, from: fed, to: fed + kAtOnce});
      if (run !== this.run) return;
      for (const {time, bytes} of packets)
        decoder.decode(new EncodedAudioChunk({type: 'key', timestamp: Math.round(1e6 * time), data: bytes}));
      fed += kAtOnce;
      if (fed > this.end) return decoder.flush().catch(() => {});
    }
  }

  // Puts decoded samples where they belong; those that are late are left out.
  put(data) {
    const buffer = this.context.createBuffer(data.numberOfChannels, data.numberOfFrames, data.sampleRate);
    for (let channel = 0; channel < data.numberOfChannels; ++channel)
      data.copyTo(buffer.getChannelData(channel), {planeIndex: channel, format: 'f32-planar'});
    const when = this.zero + data.timestamp / 1e6, late = Math.max(0, this.context.currentTime - when);
    if (late >= buffer.duration) return;
    const source = this.context.createBufferSource();
    source.buffer = buffer;
    source.connect(this.gain);
    source.onended = () => this.playing.splice(this.playing.indexOf(source), 1);
    this.playing.push(source);
    source.start(when + late, late);
  }

  stop() {
    ++this.run;
    if (this.decoder && this.decoder.state !== 'closed') this.decoder.close();
    this.decoder = undefined;
    for (const source of this.playing.splice(0)) {
      source.onended = null;
      source.stop();
    }
  }

  close() {
    this.stop();
    this.context?.close();
    this.context = undefined;
  }
}
