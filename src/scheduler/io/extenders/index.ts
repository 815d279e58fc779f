/** Calls scheduler extenders over HTTP or HTTPS. Connections are reused. */
import { Agent, request } from 'undici';
import { messageOf } from '../../../base/errors.ts';
import type { ExtenderCaller, ExtenderSettings } from '../../extender-port.ts';

const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

export function createExtenderCaller(): ExtenderCaller {
  const agents = new Map<ExtenderSettings, Agent>();
  const agentOf = (extender: ExtenderSettings): Agent => {
    let agent = agents.get(extender);
    if (agent === undefined) {
      const { tls } = extender;
      agent = new Agent({
        maxResponseSize: MAX_ANSWER_BYTES,
        connect: {
          timeout: extender.timeoutMs,
          ...(tls === undefined
            ? {}
            : {
                rejectUnauthorized: !tls.insecure,
                ...(tls.serverName === undefined ? {} : { servername: tls.serverName }),
                ...(tls.ca === undefined ? {} : { ca: tls.ca }),
                ...(tls.cert === undefined ? {} : { cert: tls.cert }),
                ...(tls.key === undefined ? {} : { key: tls.key }),
              }),
        },
      });
      agents.set(extender, agent);
    }
    return agent;
  };
  return {
    async post(extender, verb, body) {
      const url = `${extender.urlPrefix}/${verb}`;
      try {
        const answer = await request(url, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
          dispatcher: agentOf(extender),
          signal: AbortSignal.timeout(extender.timeoutMs),
        });
        if (answer.statusCode !== 200) {
          await answer.body.dump();
          throw new Error(`answered with status ${answer.statusCode}`);
        }
        return await answer.body.json();
      } catch (error) {
        const isLate = error instanceof Error && error.name === 'TimeoutError';
        const what = isLate ? `did not respond within ${extender.timeoutMs} ms` : messageOf(error);
        throw new Error(`extender ${url}: ${what}`, { cause: error });
      }
    },
    async close() {
      await Promise.all([...agents.values()].map((agent) => agent.close()));
    },
  };
}
