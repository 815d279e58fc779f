import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { HealthCheck } from './core/index.ts';
import type { HealthPorts, Listener } from './core/port.ts';

/** Maintains a listener for each health check node port. */
export interface HealthChecks {
  sync(wanted: readonly HealthCheck[]): Promise<void>;
  stop(): Promise<void>;
}

export function createHealthChecks(ports: HealthPorts, log: Log): HealthChecks {
  const listeners = new Map<number, Listener>();
  /** Current checks by port, read by the listeners at each request. */
  const checks = new Map<number, HealthCheck>();
  return {
    async sync(wanted) {
      checks.clear();
      for (const check of wanted) checks.set(check.port, check);
      for (const [port, listener] of listeners) {
        if (checks.has(port)) continue;
        listeners.delete(port);
        await listener.close();
      }
      for (const { port, namespace, name } of checks.values()) {
        if (listeners.has(port)) continue;
        const none = { namespace, name, localEndpoints: 0 };
        await ports
          .listen(port, () => checks.get(port) ?? none)
          .then(
            (listener) => listeners.set(port, listener),
            // The next change retries. A failure here does not affect the rules of services.
            (error: unknown) =>
              log.warn('health check node port not served', {
                service: `${namespace}/${name}`,
                port,
                error: messageOf(error),
              }),
          );
      }
    },
    async stop() {
      checks.clear();
      await Promise.all([...listeners.values()].map((listener) => listener.close()));
      listeners.clear();
    },
  };
}
