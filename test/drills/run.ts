/**
 * `npm run drill -- --kills N --handovers N --pauses N`: what members of a store do when they are killed, ended in order and stopped for a
 * while, as processes and under load; prints figures and fails when anything that was acknowledged is lost.
 */
import { parseArgs } from 'node:util';
import { drillLeaderLoss, drillRandomKills } from './drills.ts';
import { percentile } from './journal.ts';

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '0' },
    'leader-kills': { type: 'string', default: '0' },
    handovers: { type: 'string', default: '0' },
    pauses: { type: 'string', default: '0' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});

function report(what: string, samples: readonly number[]): void {
  if (samples.length === 0) return;
  const [p50, p99] = [percentile(samples, 0.5), percentile(samples, 0.99)];
  console.log(`${what}: p50 ${p50} ms, p99 ${p99} ms, max ${Math.round(Math.max(...samples))} ms (${samples.length})`);
}

/** Timers of the members' clients hold nothing open, so without this a drill whose members all ended would end too, instead of failing. */
const open = setInterval(() => {}, 60_000);
const kills = Number(values.kills);
if (kills > 0) {
  console.log(`seed ${values.seed}`);
  const began = performance.now();
  const summary = await drillRandomKills(kills, Number(values.seed), (done) => {
    if (done % 50 === 0) console.log(`${done} kills, ${Math.round((performance.now() - began) / 1000)} s`);
  });
  console.log(
    `${kills} kills: ${summary.acknowledged} writes acknowledged, none lost, none twice; ${summary.unknown} with unknown outcome; longest gap ${summary.longestGapMs} ms`,
  );
}
report('writes resume after kill -9 of the leader', await drillLeaderLoss('SIGKILL', Number(values['leader-kills'])));
report('writes resume after SIGTERM of the leader', await drillLeaderLoss('SIGTERM', Number(values.handovers)));
report('writes resume after SIGSTOP of the leader', await drillLeaderLoss('SIGSTOP', Number(values.pauses)));
clearInterval(open);
