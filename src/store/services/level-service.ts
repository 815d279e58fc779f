/** Reports the level of the cluster's log, and raises it on request, see log-level.ts. */
import type { Log } from '../../base/log.ts';
import type { Engine } from '../replication/engine.ts';
import type { LogLevels } from '../replication/maintenance/log-level.ts';
import type { Encoder } from './encode.ts';
import type { UnaryHandlers } from './kv-service.ts';
import { answerUnary } from './rpc-errors.ts';

interface LevelServiceDeps {
  readonly levels: LogLevels;
  readonly engine: Engine;
  readonly encoder: Encoder;
  readonly log: Log;
}

export function levelService({ levels, engine, encoder, log }: LevelServiceDeps): UnaryHandlers {
  return {
    '/hyperedge.Cluster/Level': (_message, call) =>
      answerUnary(call, log, async () => {
        const { level, supported } = levels.report;
        return encoder.begin(engine.machine.visible).int(2, level).int(3, supported).finish();
      }),
    '/hyperedge.Cluster/RaiseLevel': (_message, call) =>
      answerUnary(call, log, async () => {
        const { level, supported } = await levels.raise();
        return encoder.begin(engine.machine.visible).int(2, level).int(3, supported).finish();
      }),
  };
}
