/** Error pages of the proxy itself. */
const TITLES: ReadonlyMap<number, readonly [string, string]> = new Map([
  [400, ['Bad Request', 'The request cannot be understood.']],
  [403, ['Forbidden', 'The address of the client is not in the allow-list of the route.']],
  [421, ['Misdirected Request', 'Open another connection for this host.']],
  [429, ['Too Many Requests', 'The client has exceeded a limit of the route.']],
  [502, ['Bad Gateway', 'The server closed the connection without a complete response.']],
  [503, ['Service Unavailable', 'No route serves this host and path, or its service has no endpoints.']],
  [508, ['Loop Detected', 'The servers of the route lead back to this router.']],
  [504, ['Gateway Timeout', 'The server did not answer in time.']],
]);

export function page(status: number): string {
  const [title, text] = TITLES.get(status) ?? ['Error', ''];
  return `<!DOCTYPE html>\n<html lang="en"><head><title>${status} ${title}</title></head><body><h1>${title}</h1><p>${text}</p></body></html>\n`;
}

export const reasonOf = (status: number): string => TITLES.get(status)?.[0] ?? 'Error';
