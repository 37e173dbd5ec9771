// Decoding speed of the npm package in node: node web_bench.mjs APP FILE.tvl [THREADS [REQUEST]]
//   node tests/bench/web_bench.mjs build/web/app film.tvl 2 '{"reduce": 1}'
// prints frames, frames a second by the clock and by the CPU seconds of all threads (which on a busy machine say more), the
// module's memory and the MD5 of all frames. The module is loaded before the clock starts.
import {createHash} from 'node:crypto';
import {readFileSync} from 'node:fs';
import {resolve} from 'node:path';

const [app, file, threads = '1', request = '{}'] = process.argv.slice(2);
const {open} = await import(resolve(app, 'trivelet.js'));
const stream = await open(readFileSync(file), {threads: +threads});
const hash = createHash('md5');
let frames = 0, milliseconds = 0, cpu = 0;
for (const number of stream.gops.keys()) {
  const before = process.cpuUsage(), gop = await stream.gop({number, ...JSON.parse(request)});
  const {user, system} = process.cpuUsage(before);
  cpu += user + system;
  frames += gop.count;
  milliseconds += gop.decode_ms;
  hash.update(new Uint8Array(gop.samples));
}
console.log(`${frames} frames, ${(1000 * frames / milliseconds).toFixed(1)}/s, ` +
  `${(1e6 * frames / cpu).toFixed(1)} per CPU second, ${(stream.heap / 2 ** 20).toFixed(0)} MiB, ` +
  `start ${stream.module.milliseconds.toFixed(0)} ms, ${hash.digest('hex')}`);
stream.close();
