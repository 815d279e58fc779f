/** Sends the same requests over many connections, each after the previous response, until standard input ends. */
import { Agent, request } from 'node:https';

const { port, ca, cert, key, connections, requests } = JSON.parse(process.argv[2] ?? '{}');
const agent = new Agent({ keepAlive: true, maxSockets: connections, ca, cert, key });
const codes: Record<string, number> = {};
const latencies: number[] = [];
let over = false;

function ask(index: number): void {
  if (over) return;
  const { method, path, body } = requests[index % requests.length];
  const began = performance.now();
  const sent = request(
    {
      host: '127.0.0.1',
      port,
      agent,
      method,
      path,
      headers: body === undefined ? {} : { 'content-type': 'application/json' },
    },
    (response) => {
      codes[response.statusCode ?? 0] = (codes[response.statusCode ?? 0] ?? 0) + 1;
      response.resume();
      response.once('end', () => {
        // Rejected requests are not measured, because they do not wait.
        if ((response.statusCode ?? 0) < 400) latencies.push(performance.now() - began);
        ask(index + 1);
      });
    },
  );
  sent.once('error', () => setTimeout(ask, 10, index));
  sent.end(body === undefined ? undefined : JSON.stringify(body));
}

for (let index = 0; index < connections; index++) ask(index);
process.stdin.resume();
process.stdin.once('end', () => {
  over = true;
  latencies.sort((a, b) => a - b);
  const median = latencies[latencies.length >> 1] ?? 0;
  process.stdout.write(`${JSON.stringify({ codes, median })}\n`, () => process.exit(0));
});
