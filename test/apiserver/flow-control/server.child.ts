/**
 * An API server in its own process. Prints its address and credentials on standard output, and exits when standard
 * input ends.
 */
import { startServer } from '../harness.ts';

const fairness = process.argv[2] !== 'without';
const server = await startServer({ config: { priorityAndFairness: fairness } });
const pair = async (name: string, ...groups: string[]) => {
  const { certPem, keyPem } = await server.user(name, ...groups);
  return { cert: certPem, key: keyPem };
};
process.stdout.write(
  `${JSON.stringify({
    port: server.port,
    ca: server.ca.certPem,
    admin: { cert: server.admin.certPem, key: server.admin.keyPem },
    node: await pair('system:node:n1', 'system:nodes'),
    flood: await pair('flood'),
  })}\n`,
);
process.stdin.resume();
process.stdin.once('end', () => {
  void server.stop().then(() => process.exit(0));
});
