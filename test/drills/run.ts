/**
 * `npm run drill -- --kills N --handovers N --pauses N`: what members of a store do when they are killed, ended in order and stopped for a
 * while, as processes and under load; prints figures and fails when anything that was acknowledged is lost, or when 99 of 100 do not resume in
 * the time that is asked for: `--kill-goal MS`, `--handover-goal MS` and `--pause-goal MS` ask for another one.
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
const killed = await drillLeaderLoss('SIGKILL', Number(values['leader-kills']));
report('writes resume after kill -9 of the leader', killed, values['kill-goal']);
const handedOver = await drillLeaderLoss('SIGTERM', Number(values.handovers));
report('writes resume after SIGTERM of the leader', handedOver, values['handover-goal']);
const paused = await drillLeaderLoss('SIGSTOP', Number(values.pauses));
report('writes resume after SIGSTOP of the leader', paused, values['pause-goal']);
clearInterval(open);
