/** Calls whose output differs from kubectl's on purpose, with the reason. */
export const DIFFERENCES: Readonly<Record<string, string>> = {
  'get cm -n demo -o wrong': 'the message lists the formats of this client, which has no Go templates and no KYAML',
  frobnicate: 'kubectl searches for a plug-in; this client has none and names the unknown command',
};
