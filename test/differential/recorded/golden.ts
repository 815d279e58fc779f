/** Responses of a new server to a script, one line of JSON each. */
import { startServer } from '../../apiserver/harness.ts';
import { Connection } from '../exchange.ts';
import { play } from './play.ts';
import type { Step } from './script.ts';

export async function goldenOf(steps: readonly Step[]): Promise<string> {
  const server = await startServer();
  const connection = new Connection({ port: server.port, ca: server.ca.certPem, identity: server.admin });
  try {
    const recorded = await play(steps, connection);
    return `${recorded.map((each) => JSON.stringify(each)).join('\n')}\n`;
  } finally {
    connection.close();
    await server.stop();
  }
}
