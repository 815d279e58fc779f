/**
 * `npm run drill -- --kills N --handovers N --pauses N` kills, stops and suspends store members under load, as
 * processes. Prints figures, and fails if an acknowledged write is lost or if fewer than 99 of 100 cases resume within
 * the goal. `--kill-goal MS`, `--handover-goal MS` and `--pause-goal MS` set other goals.
 */
import { parseArgs } from 'node:util';
import { drillLeaderLoss, drillRandomKills } from './drills.ts';
import { GOALS, judged } from './goals.ts';

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '0' },
    'leader-kills': { type: 'string', default: '0' },
    handovers: { type: 'string', default: '0' },
    pauses: { type: 'string', default: '0' },
    'kill-goal': { type: 'string', default: String(GOALS.kill) },
    'handover-goal': { type: 'string', default: String(GOALS.handover) },
    'pause-goal': { type: 'string' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});

function report(what: string, samples: readonly number[], goal: string | undefined): void {
  const judgement = judged(what, samples, goal === undefined ? undefined : Number(goal));
  if (judgement === undefined) return;
  console.log(judgement.line);
  if (judgement.missed) process.exitCode = 1;
}

/** Keeps this process alive: the clients' timers do not, so it would exit successfully when all members have ended. */
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
const killed = await drillLeaderLoss('SIGKILL', Number(values['leader-kills']));
report('writes resume after kill -9 of the leader', killed, values['kill-goal']);
const handedOver = await drillLeaderLoss('SIGTERM', Number(values.handovers));
report('writes resume after SIGTERM of the leader', handedOver, values['handover-goal']);
const paused = await drillLeaderLoss('SIGSTOP', Number(values.pauses));
report('writes resume after SIGSTOP of the leader', paused, values['pause-goal']);
clearInterval(open);
