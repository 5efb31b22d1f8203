const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
if (isMainThread) {
  const text = require('fs').readFileSync('in/text', 'utf8');
  const count = new Map();
  for (const word of text.match(/\w+/g)) count.set(word, (count.get(word) ?? 0) + 1);
  console.log([...count].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, 3));
  const work = (n) => new Promise((done) => new Worker(__filename, { workerData: n }).on('message', done));
  Promise.all([1, 2, 3].map(work)).then((sums) => {
    console.log(sums, require('crypto').createHash('sha256').update(text).digest('hex'));
    require('fs').writeFileSync('out.bin', Buffer.alloc(300000, 7));
    process.exitCode = 5;
  });
} else {
  let sum = 0;
  for (let i = 0; i < 100000; i++) sum += (i * workerData) % 17;
  parentPort.postMessage(sum);
}
