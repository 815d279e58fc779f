/** A scheduler extender that accepts only nodes whose name ends in an even digit and prefers `hollow-2`. */
import { createServer } from 'node:http';

interface Arguments {
  readonly NodeNames?: readonly string[];
}

const server = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const { NodeNames: nodenames = [] } = JSON.parse(Buffer.concat(chunks).toString('utf8')) as Arguments;
  const isEven = (name: string): boolean => Number(name.at(-1)) % 2 === 0;
  const answer = request.url?.endsWith('/prioritize')
    ? nodenames.map((host) => ({ host, score: host === 'hollow-2' ? 10 : 0 }))
    : {
        nodenames: nodenames.filter(isEven),
        failedNodes: Object.fromEntries(nodenames.filter((name) => !isEven(name)).map((name) => [name, 'odd node'])),
      };
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
});
server.listen(Number(process.argv[2]), '127.0.0.1', () => console.log('listening'));
