/** What the server advises to install with pip, where it can be installed from the editor. */
import { EXTRAS, type ExtraName } from "./environment/extras";

const INSTALL = /`pip install 'warpwright\[([\w,]+)\]'`/g;
export const CREATE = "Create Environment";

/** The extras that a message names, and the message with the button's name in the place of pip's command. */
export function advised(message: string): { readonly message: string; readonly extras: readonly ExtraName[] } {
  const named = [...message.matchAll(INSTALL)].flatMap((found) => (found[1] ?? "").split(","));
  const extras = EXTRAS.map((extra) => extra.name).filter((name) => named.includes(name));
  return extras.length > 0 ? { message: message.replace(INSTALL, `*${CREATE}*`), extras } : { message, extras };
}
