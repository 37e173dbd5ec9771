// Uses the npm package in node: answers a list of requests with MD5s, as JSON on stdout. web_test.py compares them with
// what the program decodes.
//   node package_user.mjs '[{"file": "a.tvl", "threads": 1, "request": {"reduce": 1}}, ...]'
import {createHash} from 'node:crypto';
import {readFileSync} from 'node:fs';
import {open, voxel_array} from 'trivelet';
import {load_volume} from 'trivelet/niivue';

const md5 = bytes => createHash('md5').update(bytes).digest('hex');

// All GOPs that `order` names, or all in their order.
async function film(stream, {request = {}, order}) {
  const hash = createHash('md5');
  let frames = 0;
  for (const number of order || stream.gops.keys()) {
    const gop = await stream.gop({number, ...request});
    hash.update(new Uint8Array(gop.samples));
    frames += gop.count;
  }
  return {md5: hash.digest('hex'), frames, format: stream.video.format, heap: stream.heap};
}

async function volume(stream, {box, file}) {
  const got = await stream.box(box), nifti = new Uint8Array(await load_volume(readFileSync(file)));
  return {md5: md5(new Uint8Array(got.voxels)), count: voxel_array(got).length, nifti: md5(nifti)};
}

const answers = [];
for (const asked of JSON.parse(process.argv[2])) {
  let stream;
  try {
    stream = await open(readFileSync(asked.file), {threads: asked.threads});
    answers.push(await (stream.is_volume ? volume : film)(stream, asked));
  } catch (error) {
    answers.push({error: error.message, result: error.result});
  } finally {
    stream?.close();
  }
}
console.log(JSON.stringify(answers));
