// Runs the program once. Lines of output are sent as they come; the end has the exit code and the errors.
onmessage = ({ data: { module, args, files } }) => {
  const reader = (use) => {
    const decoder = new TextDecoder();
    let rest = "";
    return (piece) => {
      const lines = (rest + decoder.decode(piece, { stream: true })).split("\n");
      rest = lines.pop();
      lines.forEach(use);
    };
  };
  const errors = [];
  const out = reader((line) => postMessage({ line }));
  const err = reader((line) => errors.push(line));
  let code;
  try {
    code = runProgram(module, args, files, out, err);
  } catch (error) {
    code = 101;
    errors.push(String(error));
  }
  out(new TextEncoder().encode("\n"));
  err(new TextEncoder().encode("\n"));
  postMessage({ code, errors: errors.join("\n").trim() });
};
